"""Attack texts privatized by several mechanisms at several ε, and print how far that gets.

    python examples/attacks.py attribution --data authorship/reuters_c50.jsonl.gz
    python examples/attacks.py membership --data utility/mr.jsonl.gz
    python examples/attacks.py users --data authorship/reuters_c50.jsonl.gz
    python examples/attacks.py reconstruction --data utility/mr.jsonl.gz

Every attack is also run on the texts as they were written, where it should succeed, and on releases
that have been mixed up, where nothing but chance is left. The data are JSON lines with a column
"text" and "author" or "label"; where there is a column "split", the authors of the part "train" are
known to the attacker and those of the part "test" are to be found.
"""

import argparse
import gzip
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.calibration import privacy_statistics
from hf_dxprivacy.evaluation import (
    author_attribution,
    membership_inference,
    reconstruction,
    user_audit,
)
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from hf_dxprivacy.results import Interval, Result, Results, share_interval
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import RowReader

# Takes texts, as released and in the order of the originals.
Attack = Callable[[list[str]], Results]
# Of the attacker, who has nothing to hide. The releases themselves are fresh in every run.
SEED = 20260101
READER = RowReader()


@dataclass(frozen=True)
class Line:
    """A mechanism, and the ε over which what it releases goes from noise to the original."""

    space: str
    mechanism: str
    epsilons: tuple[float, ...]
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """What the results call it."""
        kind = self.options.get("noise", "")
        where = "Poincaré ball" if self.space == "wordnet-poincare" else ""
        return ", ".join(part for part in (self.mechanism, kind, where) if part)


LINES = {
    "calibrated": Line("wordnet-gloss", "calibrated", (4, 5, 6, 7, 8, 10)),
    "tem": Line("wordnet-gloss", "tem", (6, 8, 9, 10, 12)),
    "laplace": Line("wordnet-gloss", "laplace", (10, 20, 30, 40, 60)),
    "ball": Line("wordnet-poincare", "calibrated", (4, 6, 7, 8, 10)),
    # The first exists only above (n−1)/scale = 31.11; the second costs n/scale = 34.56 more.
    "riemannian": Line("wordnet-poincare", "hyperbolic", (32, 40, 80), {"noise": "riemannian"}),
    "lebesgue": Line("wordnet-poincare", "hyperbolic", (0.5, 8), {"noise": "lebesgue"}),
}


def main() -> None:
    """Run an attack."""
    options = parse_arguments()
    rows = read_rows(options.data)
    results = Results()
    for found in ATTACKS[options.attack](options, rows):
        # One by one, since they take a while.
        print(found.to_markdown() if not results else found.to_markdown().split("\n", 2)[2])
        results += found
        if options.output:
            results.save(options.output)
    # Between the ε of a line, of which it takes two.
    if options.attack == "reconstruction" and len(options.epsilon or ()) != 1:
        print(f"\n{at_equal_kept(results)}")


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("attack", choices=sorted(ATTACKS))
    add("--data", type=Path, required=True, help="a .jsonl file (.gz too)")
    add("--lines", nargs="+", choices=sorted(LINES), default=list(LINES))
    add("--epsilon", type=float, nargs="+", help="instead of those of the lines")
    add("--rows", type=int, default=2000, help="texts of membership inference (%(default)s)")
    add("--every", type=int, default=1, help="attribute only every n-th text")
    add("--known_released", action="store_true", help="privatize what the attacker knows, too")
    add("--words_only", action="store_true", help="take punctuation off what is attributed")
    add("--texts", type=int, default=4, help="texts of each audited user (%(default)s)")
    add("--length", type=int, default=400, help="words of each of them (%(default)s)")
    add("--words", type=int, default=1000, help="candidates of the adversary (%(default)s)")
    add("--draws", type=int, default=200, help="draws from each of them (%(default)s)")
    add("--repeats", type=int, default=3)
    add("--output", type=Path, help="write the results as JSON lines, too")
    return parser.parse_args()


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Read JSON lines."""
    with gzip.open(path, "rt") if path.suffix == ".gz" else path.open() as lines:
        return [json.loads(line) for line in lines]


def generator() -> np.random.Generator:
    """Return a generator for the attacker, who has nothing to hide."""
    return np.random.default_rng(SEED)


def releases(
    options: argparse.Namespace, texts: Sequence[str], attack: Attack
) -> Iterator[Results]:
    """Attack originals, mixed-up originals, and what each mechanism releases."""
    labels: dict[str, Any] = {"dataset": options.data.name.partition(".")[0]}
    originals = list(texts)
    yield attack(originals).replace(**labels)
    mixed = [originals[i] for i in generator().permutation(len(originals))]
    yield attack(mixed).replace(**labels, mechanism="mixed up")
    for line, epsilon in chosen(options):
        space = EmbeddingSpace.from_pretrained(line.space)
        privatizer = DxPrivatizer(space, line.mechanism, epsilon, **line.options)
        released = privatizer.privatize(originals)
        found = Results([unchanged(originals, released), *attack(released)])
        yield found.replace(**labels, mechanism=line.name, epsilon=epsilon)


def unchanged(originals: list[str], released: list[str]) -> Result:
    """Count the words that came out as they were."""
    before, after = (
        [word for text in texts for word in words_of(text)] for texts in (originals, released)
    )
    same = sum(old == new for old, new in zip(before, after, strict=True))
    return Result.of("release", "words unchanged", share_interval(same, len(before)))


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return [word.lower() for word in READER.read_text(text).words]


def chosen(options: argparse.Namespace) -> Iterator[tuple[Line, float]]:
    """Return the mechanisms and ε to try."""
    for line in (LINES[name] for name in options.lines):
        for epsilon in options.epsilon or line.epsilons:
            yield line, epsilon


def attribution(options: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[Results]:
    """Tell who wrote each text."""
    known = [row for row in rows if row["split"] == "train"]
    asked = [row for row in rows if row["split"] == "test"][:: options.every]
    authors = [row["author"] for row in asked]

    def attack(texts: list[str]) -> Results:
        there, mine = texts[: len(asked)], texts[len(asked) :] or [row["text"] for row in known]
        if options.words_only:
            there, mine = ([" ".join(words_of(text)) for text in part] for part in (there, mine))
        names = [row["author"] for row in known]
        return author_attribution(mine, names, there, authors, rng=generator()).results

    texts = [row["text"] for row in asked]
    if options.known_released:
        texts += [row["text"] for row in known]
    return releases(options, texts, attack)


def membership(options: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[Results]:
    """Tell which texts a classifier was trained on."""
    part = [rows[i] for i in generator().permutation(len(rows))[: options.rows]]
    originals, labels = [row["text"] for row in part], [row["label"] for row in part]

    def attack(texts: list[str]) -> Results:
        return membership_inference(
            originals, texts, labels, repeats=options.repeats, rng=generator()
        )

    return releases(options, originals, attack)


def users(options: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[Results]:
    """Tell whose texts a language model was trained on."""
    seen: Counter[str] = Counter()
    originals, names = [], []
    for row in rows:
        if seen[row["author"]] < options.texts:
            seen[row["author"]] += 1
            names.append(row["author"])
            originals.append(" ".join(row["text"].split()[: options.length]))

    def attack(texts: list[str]) -> Results:
        return user_audit(originals, texts, names, repeats=options.repeats, rng=generator())

    return releases(options, originals, attack)


def reconstruct(options: argparse.Namespace, rows: list[dict[str, Any]]) -> Iterator[Results]:
    """Tell a word from what it became, beside how often it stays."""
    counts = Counter(word for row in rows for word in words_of(row["text"]))
    for line, epsilon in chosen(options):
        space = EmbeddingSpace.from_pretrained(line.space)
        prior = Counter({word: count for word, count in counts.items() if word in space})
        mechanism = create_mechanism(line.mechanism, space, epsilon, **line.options)
        yield attack_words(mechanism, dict(prior.most_common(options.words)), line, options)


def attack_words(
    mechanism: Mechanism, prior: dict[str, int], line: Line, options: argparse.Namespace
) -> Results:
    """Return the success of the adversary who knows the frequencies, and the mean N_w."""
    found = reconstruction(mechanism, prior, draws=options.draws, rng=generator())
    kept = privacy_statistics(mechanism, found.words, runs=options.draws).kept
    mean = float(kept @ found.prior)
    unchanged = Result.of("reconstruction", "N_w", Interval(mean, mean, mean))
    dataset = options.data.name.partition(".")[0]
    return Results([*found.results, unchanged]).replace(
        dataset=dataset, mechanism=line.name, epsilon=mechanism.epsilon
    )


def at_equal_kept(results: Results, levels: Sequence[float] = (0.1, 0.3, 0.5, 0.7, 0.9)) -> str:
    """Return a table of successes where N_w is the same, on lines between the ε that were tried."""
    lines = ["| mechanism | " + " | ".join(f"N_w = {level:g}" for level in levels) + " |"]
    lines.append("|---|" + "---:|" * len(levels))
    for name in dict.fromkeys(r.mechanism for r in results):
        mine = results.where(mechanism=name)
        kept = [r.value for r in mine.where(metric="N_w")]
        found = np.interp(
            levels, kept, [r.value for r in mine.where(metric="top-1")], left=np.nan, right=np.nan
        )
        cells = ["" if np.isnan(value) else f"{value:.3f}" for value in found]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


ATTACKS: dict[str, Callable[[argparse.Namespace, list[dict[str, Any]]], Iterator[Results]]] = {
    "attribution": attribution,
    "membership": membership,
    "users": users,
    "reconstruction": reconstruct,
}


if __name__ == "__main__":
    main()
