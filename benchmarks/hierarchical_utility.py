"""What `hierarchical` keeps and hides in `english`, beside the other mechanisms.

    python benchmarks/hierarchical_utility.py --cache benchmarks/out/hierarchical.jsonl

Each mechanism is compared with `hierarchical` where as many known words stay. A row is a mean over
releases:

stays      share of running words (MR) that come out as they were
near       of the changed ones, the share that is among the 100 nearest by cosine
b1, b10    success of the Bayes adversary who knows the mechanism and how often each word occurs in
           MR, with one guess and with ten; over the 3,000 most frequent words, exact; for `laplace`
           from draws
local DP   bound of the log-ratio for any two words
MR, TREC, SST-5   accuracy of averaged GloVe vectors and logistic regression, trained on the
           release and tested on plain text / trained on plain text and tested on the release
PAN11      e-mails, of 998, whose author is found by one who knows other mails as they were
           written / and by one who privatizes these first
C50        news, of 500, in the same way, by one who knows others as they were written

With --cache a run that was interrupted goes on where it was.
"""

import argparse
import math
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import common
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace
from hf_dxprivacy.evaluation import reconstruction
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from released_words import Authors, Task, Vectors

HIERARCHICAL = (1.25, 1.5, 1.75, 2.0)
OTHERS = ("calibrated", "tem", "laplace", "krr")
# At these ε of `hierarchical` the others are set to keep as many words.
MATCHED = (1.5, 2.0)
GUESSED_WORDS = 3000
SAMPLED_WORDS = 2000
PARTS = ("MR", "PAN11", "guesses", "TREC", "SST-5", "C50")
TASKS = {"MR": "mr", "TREC": "trec6", "SST-5": "sst5"}


Row = dict[str, Any]


class Bench:
    """The space, the datasets, and what all rows share."""

    def __init__(self, options: argparse.Namespace) -> None:
        data: Path = options.data
        self.space = EmbeddingSpace.from_pretrained(options.space)
        self._data, self.once = data, common.Measured(options.cache).once

    @cached_property
    def vectors(self) -> Vectors:
        """What texts are read with."""
        return Vectors(common.glove(self._data))

    @cached_property
    def tasks(self) -> dict[str, Task]:
        """The labelled datasets."""
        folder = self._data / "utility"
        return {k: Task(folder / f"{v}.jsonl.gz", self.vectors) for k, v in TASKS.items()}

    @cached_property
    def authors(self) -> dict[str, Authors]:
        """The datasets with authors."""
        folder = self._data / "authorship"
        return {
            "PAN11": Authors(folder / "pan11_enron_small.jsonl.gz", ("validation", "test")),
            "C50": Authors(folder / "reuters_c50.jsonl.gz", ("test",), every=5),
        }

    @cached_property
    def counts(self) -> Counter[str]:
        """How often each word of the space occurs in MR."""
        words = Counter(word for row in self.tasks["MR"].lowered for word in row)
        return Counter({word: n for word, n in words.items() if word in self.space})

    def staying(self, mechanism: Mechanism) -> float:
        """Return the probability that a running word of MR that the space has stays."""
        words, weights = list(self.counts), np.array(list(self.counts.values()), dtype=float)
        rng = np.random.default_rng(1)
        drawn = rng.choice(len(words), SAMPLED_WORDS, p=weights / weights.sum())
        ids = self.space.ids([words[k] for k in drawn])
        if mechanism.name in ("hierarchical", "krr", "tem", "calibrated"):
            unique, at = np.unique(ids, return_inverse=True)
            blocks = np.array_split(unique, 20)
            stays = [mechanism.probabilities(b)[np.arange(len(b)), b] for b in blocks]
            return float(np.concatenate(stays)[at].mean())
        return float((mechanism.sample(ids, np.random.default_rng(2)) == ids).mean())

    def matched(self, name: str, target: float) -> float:
        """Return the ε at which a mechanism lets as many words stay."""
        if name == "krr":
            return math.log(target * (len(self.space) - 1) / (1 - target))
        low, high = 1.0, {"laplace": 60.0}.get(name, 16.0)
        for _ in range(9):
            middle = (low + high) / 2
            mechanism = create_mechanism(name, self.space, middle)
            below = self.staying(mechanism) < target
            low, high = (middle, high) if below else (low, middle)
        return round((low + high) / 2, 3)

    def guesses(self, mechanism: Mechanism) -> dict[str, float]:
        """Return the success of the Bayes adversary."""
        prior = dict(self.counts.most_common(GUESSED_WORDS if mechanism.name != "laplace" else 300))
        draws = {"draws": 200, "rng": np.random.default_rng(3)}
        found = reconstruction(mechanism, {k: float(v) for k, v in prior.items()}, **draws)
        values = {r.metric: r.value for r in found.results}
        return {"b1": values["top-1"], "b10": values["top-10"]}

    def measure(self, part: str, privatizer: DxPrivatizer | None) -> dict[str, float]:
        """Release a dataset once, and measure."""

        def released(texts: list[Any]) -> list[Any]:
            return texts if privatizer is None else privatizer.privatize(texts)

        if part in self.tasks:
            task = self.tasks[part]
            words = released(task.words)
            kept = task.kept(words) if part == "MR" and privatizer is not None else {}
            return kept | {f"{part} {k}": v for k, v in task.scores(words).items()}
        authors = self.authors[part]
        texts = released(authors.texts)
        values = {part: float(authors.found(texts))}
        if part == "PAN11" and privatizer is not None:
            values["PAN11 adaptive"] = float(authors.found(texts, released(authors.known)))
        return values

    def row(self, name: str, epsilon: float | None, parts: Sequence[str], repeats: int) -> Row:
        """Return a row of the table, as far as it is asked for; without ε, for plain texts."""
        row: Row = {"mechanism": name, "ε": epsilon or ""}
        privatizer = None
        key = f"{self.space.digest[:12]} {name} {epsilon}"
        if epsilon is not None:
            mechanism = create_mechanism(name, self.space, epsilon)
            privatizer = DxPrivatizer(self.space, name, epsilon)
            row["local DP"] = float(mechanism.guarantee.ldp_epsilon)
            if "guesses" in parts:
                row |= self.once(f"{key} guesses", lambda: self.guesses(mechanism))
        for part in (part for part in parts if part != "guesses"):
            runs = [
                self.once(f"{key} {part} {k}", lambda p=part: self.measure(p, privatizer))
                for k in range(repeats if privatizer else 1)
            ]
            row |= {k: float(np.mean([run[k] for run in runs])) for k in runs[0]}
        return row


def shown(row: Row) -> dict[str, str]:
    """Return a row as the page has it."""

    def figure(name: str, digits: int) -> str:
        return f"{row[name]:.{digits}f}" if name in row else ""

    def pair(first: str, second: str, digits: int) -> str:
        return " / ".join(filter(None, (figure(first, digits), figure(second, digits))))

    return {
        "mechanism": str(row["mechanism"]),
        "ε": f"{row['ε']:.4g}" if row["ε"] else "",
        "local DP": figure("local DP", 1) if math.isfinite(row.get("local DP", 0)) else "∞",
        "stays": figure("stays", 3),
        "near": figure("near", 3),
        "b1 / b10": pair("b1", "b10", 3),
        **{name: pair(f"{name} trained on", f"{name} read", 3) for name in TASKS},
        "PAN11": pair("PAN11", "PAN11 adaptive", 0),
        "C50": figure("C50", 0),
    }


def schedule(parts: Sequence[str], repeats: int) -> list[tuple[Sequence[str], int]]:
    """Return what to measure first, and what next."""
    first = [(parts[: k + 1], 1) for k in range(len(parts))]
    return first + [(parts, k) for k in range(2, repeats + 1)]


def lines(bench: Bench, mechanisms: Sequence[str]) -> list[tuple[str, float | None]]:
    """Return the mechanism and the ε of each row."""
    found: list[tuple[str, float | None]] = [("none", None)]
    for epsilon in HIERARCHICAL:
        found.append(("hierarchical", epsilon))
        if epsilon not in MATCHED:
            continue
        key = f"{bench.space.digest[:12]} staying {epsilon:g}"
        mechanism = create_mechanism("hierarchical", bench.space, epsilon)
        target = bench.once(key, lambda m=mechanism: {"share": bench.staying(m)})["share"]
        for name in mechanisms:
            key = f"{bench.space.digest[:12]} {name} as {epsilon:g}"
            at = bench.once(key, lambda n=name, t=target: {"ε": bench.matched(n, t)})["ε"]
            found.append((name, at))
    return found


def main() -> None:
    """Measure all rows, print them, and write them down."""
    parser = common.parser(__doc__)
    parser.add_argument("--space", default="english")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--cache", type=Path)
    parser.add_argument(
        "--page", type=Path, help="write the table into docs/results/hierarchical.md"
    )
    parser.add_argument("--mechanisms", nargs="*", default=OTHERS)
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    bench = Bench(options)
    rows: list[Row] = []
    # All rows with one release of one dataset, then more: a run may be stopped at any time.
    for parts, repeats in schedule(options.parts, options.repeats):
        rows = [bench.row(*line, parts, repeats) for line in lines(bench, options.mechanisms)]
    title = "hierarchical beside the others, at equal shares of words that stay"
    common.report(title, rows, options.json)
    if options.page:
        common.write_into(options.page, "table", common.markdown([shown(row) for row in rows]))


if __name__ == "__main__":
    main()
