"""Releases with false claims, which `verify_claim` has to flag, and true ones, which it may not.

Each false one beside a true one that it is easily taken for. Every true one is verified many times;
a share of them above the stated false-alarm rate would be a fault of the audit.

The release that puts each original into the next row is shown to `verify_companions` and `compare`
as well, and so is its honest counterpart.

    python benchmarks/claims.py
    python benchmarks/claims.py --repeats 10 --workers 2
    python benchmarks/claims.py --only "next row"
"""

import dataclasses
import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import datasets
import numpy as np

import common
from faulty_mechanisms import clusters
from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.evaluation import External, compare
from hf_dxprivacy.evaluation.comparison import FALSE as FALSE_CLAIM
from hf_dxprivacy.guarantee import PrivacyGuarantee
from hf_dxprivacy.randomness import keyed_generator, process_generator
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.verify import ClaimCheck, verify_claim, verify_companions

WORDS = tuple(clusters().words[:30])
UNKNOWN = ("qwertz", "yxcvbn")


def response(epsilon: float) -> DxPrivatizer:
    """Randomized response over 300 words."""
    return DxPrivatizer(clusters(), "krr", epsilon)


@functools.cache
def tree_space() -> EmbeddingSpace:
    """The 300 words with a tree."""
    return clusters().build_hierarchy(progress=False)


def tree() -> DxPrivatizer:
    """Mechanism "hierarchical" over 300 words, whose level is reached by some pairs."""
    return DxPrivatizer(tree_space(), "hierarchical", 1.5)


class Leaks:
    """Releases one input in a thousand as it is."""

    def __init__(self, honest: DxPrivatizer | SentencePrivatizer, share: float = 1e-3) -> None:
        self.honest, self.share, self.claim = honest, share, honest.guarantee.bound
        self.unit = getattr(honest, "unit", "word")

    def privatize(self, texts: list[str]) -> list[str]:
        """Privatize single words, or texts."""
        leaks = process_generator().random(len(texts)) < self.share
        released = self.honest.privatize(texts)
        return [str(a if leak else b) for a, b, leak in zip(texts, released, leaks, strict=True)]


class HalfClaimed(Leaks):
    """Claims half its ε."""

    def __init__(self, honest: DxPrivatizer) -> None:
        super().__init__(honest, share=0.0)
        self.claim = lambda a, b: honest.guarantee.bound(a, b) / 2.0


class NextRow(Leaks):
    """Releases each original in the next row, verbatim: of a run of equal rows, after the run."""

    def __init__(self, honest: DxPrivatizer) -> None:
        self.honest, self.guarantee = honest, honest.guarantee

    def privatize(self, texts: list[str]) -> list[str]:
        """Privatize single words, or texts."""
        released, before = self.honest.privatize(list(texts)), None
        for k, text in enumerate(texts):
            before = texts[k - 1] if k and texts[k - 1] != text else before
            released[k] = released[k] if before is None else before
        return released


class KeepsLetters(Leaks):
    """Releases the first letters of unknown words that are long."""

    def __init__(self, honest: DxPrivatizer, letters: int) -> None:
        super().__init__(honest)
        self.letters = letters

    def privatize(self, texts: list[str]) -> list[str]:
        """Privatize single words."""
        pairs = zip(texts, self.honest.privatize(texts), strict=True)
        return [a[: self.letters] if len(a) >= 20 else b for a, b in pairs]


class Numbers:
    """Randomized response, by one uniform number for each word of each text; honest."""

    claim = 1.0

    def privatize(self, texts: list[str]) -> list[str]:
        """Privatize texts."""
        rows = [text.split() for text in texts]
        numbers = self.numbers(texts, process_generator().random((len(texts), 8)))
        return [
            " ".join(map(self.word, row, number)) for row, number in zip(rows, numbers, strict=True)
        ]

    def word(self, word: str, number: float) -> str:
        """Return the word with the greatest probability that the claim allows, or any."""
        words, stays = clusters().words, np.expm1(self.claim) / len(clusters())
        at = number * (1.0 + stays) * len(words)
        known = word if word in WORDS else words[0]
        return words[int(at)] if at < len(words) else known

    def numbers(self, texts: list[str], numbers: Any) -> Any:
        """Return (texts, 8) uniform numbers."""
        del texts
        return numbers


class PairedRows(Numbers):
    """Rows 2k and 2k + 1 share their numbers."""

    def numbers(self, texts: list[str], numbers: Any) -> Any:
        """Return the numbers of the even rows."""
        return numbers[np.arange(len(texts)) // 2]


class EqualNeighbours(Numbers):
    """Equal rows that stand beside each other share their numbers."""

    def numbers(self, texts: list[str], numbers: Any) -> Any:
        """Return the numbers of the first one of equal rows."""
        first = np.cumsum([k == 0 or texts[k] != texts[k - 1] for k in range(len(texts))]) - 1
        return numbers[first]


class OneNumber(Numbers):
    """All words of a text share one number."""

    def numbers(self, texts: list[str], numbers: Any) -> Any:
        """Return the first number of each text."""
        return np.repeat(numbers[:, :1], 8, axis=1)


class Understates(DxPrivatizer):
    """Prints a hundredth of its bounds."""

    @property
    def guarantee(self) -> PrivacyGuarantee:  # type: ignore[override]
        """The guarantee, with other numbers."""
        honest = super().guarantee
        near = {k: value / 100.0 for k, value in honest.neighbour_epsilon.items()}
        return dataclasses.replace(honest, ldp_epsilon=0.01, neighbour_epsilon=near)


class SharedNoise:
    """Holds a generator, of which every worker gets a copy."""

    claim = 1.0

    def __init__(self, seed: int | None = None) -> None:
        self.rng = np.random.default_rng(seed)
        self.mechanism = response(1.0).mechanism

    def privatize(self, texts: list[str]) -> list[str]:
        """Privatize single words."""
        ids = self.mechanism.space.ids(texts)
        return [self.mechanism.space.words[k] for k in self.mechanism.sample(ids, self.rng)]


class SameSeed(SharedNoise):
    """Seeds its generator in every call."""

    def privatize(self, texts: list[str]) -> list[str]:
        """Privatize single words."""
        self.rng = np.random.default_rng(42)
        return super().privatize(texts)


# A program of its own, whose noise starts with the same seed in each process.
SEEDED = """
import json, random, sys
random.seed(42)
words = sys.argv[1].split()
for line in sys.stdin:
    word = json.loads(line)
    print(json.dumps(word if word in words and random.random() < .01 else random.choice(words)),
          flush=True)
"""


def seeded_program() -> External:
    """Randomized response by another program."""
    return External([sys.executable, "-c", SEEDED, " ".join(WORDS)], name="seeded", claim=1.0)


# A program that answers three lines of ten with the line before.
LINE_BEFORE = """
import json, random, sys
words, before = sys.argv[1].split(), ""
for line in sys.stdin:
    print(json.dumps(before if random.random() < .3 else random.choice(words)), flush=True)
    before = json.loads(line)
"""


def leaking_program() -> External:
    """A program whose answers hold the line before."""
    return External([sys.executable, "-c", LINE_BEFORE, " ".join(WORDS)], name="before", claim=8.0)


class LanguageModel:
    """A toy that writes four tokens at a temperature, each by logits that favour the prompt's.

    It claims 4·2C/T, as DP-Prompt (Utpala et al., 2023) does for logits within ±C.
    """

    tokens = np.array("the a good bad film plot was is dull great".split())
    claim, unit, bound, temperature = 4.0, "text", 0.5, 1.0

    def __init__(self, clipped: bool) -> None:
        self.clipped = clipped

    def privatize(self, texts: list[str]) -> list[str]:
        """Rewrite texts."""
        different = {text: row for row, text in enumerate(dict.fromkeys(texts))}
        logits = np.array([3.0 * np.isin(self.tokens, text.split()) - 1.5 for text in different])
        if self.clipped:
            logits = np.clip(logits, -self.bound, self.bound)
        laws = np.exp(logits / self.temperature)
        sums = np.cumsum(laws / laws.sum(axis=1, keepdims=True), axis=1)
        of_texts = sums[[different[text] for text in texts], None]
        uniforms = process_generator().random((len(texts), 4, 1))
        # The last sum may be rounded to less than 1.
        drawn = (uniforms > of_texts[..., :-1]).sum(axis=2)
        return [" ".join(row) for row in self.tokens[drawn].tolist()]


TEXTS = ("the film was great", "a dull plot", "the plot is bad", "a good film", "great great film")


@functools.cache
def pool() -> SentencePool:
    """Sixty sentences, by averaged vectors of the 300 words."""
    rng = np.random.default_rng(3)
    sentences = [" ".join(rng.choice(clusters().words, 5)) for _ in range(60)]
    return SentencePool.from_sentences(sentences, clusters(), progress=False)


class Release(NamedTuple):
    """What makes a release, the inputs that are drawn for, and the test that flags it, if any."""

    make: Callable[[], Any]
    inputs: tuple[str, ...] | None
    flagged: str = ""
    # Worker processes without which it is not to be seen.
    workers: int = 0


BOTH = (*WORDS, *UNKNOWN)
FALSE = {
    "leaks one word in a thousand": Release(
        lambda: Leaks(tree()), BOTH, "unknown words come out as they are"
    ),
    "leaks one text in a thousand": Release(
        lambda: Leaks(SentencePrivatizer(pool(), epsilon=0.5)),
        pool().sentences[:10],
        "unknown words come out as they are",
    ),
    "the original in the next row": Release(
        lambda: NextRow(tree()), BOTH, "unknown words come out as they are"
    ),
    "the line before, in three lines of ten": Release(leaking_program, WORDS, "unknown words"),
    "20 letters of long unknown words": Release(
        lambda: KeepsLetters(tree(), 20), BOTH, "letters of unknown words"
    ),
    "12 letters of long unknown words": Release(
        lambda: KeepsLetters(tree(), 12), BOTH, "letters of unknown words"
    ),
    "two rows share a number": Release(PairedRows, WORDS, "share their noise"),
    "equal rows beside each other": Release(EqualNeighbours, WORDS, "share their noise"),
    "one number for a text": Release(OneNumber, WORDS, "share their noise"),
    "prints a hundredth": Release(
        lambda: Understates(tree_space(), "hierarchical", 1.5), None, "guarantee.ldp_epsilon is"
    ),
    "claims half its ε": Release(lambda: HalfClaimed(tree()), BOTH, "times as often as is claimed"),
    "shares noise between workers": Release(SharedNoise, WORDS, "share their noise", 2),
    "same seed in every process": Release(seeded_program, WORDS, "share their noise", 2),
    "same seed, one process": Release(seeded_program, WORDS, "share their noise"),
    "same seed in every call": Release(SameSeed, WORDS, "share their noise"),
    "unclipped logits": Release(lambda: LanguageModel(False), TEXTS, "a log-ratio of"),
}
TRUE = {
    "hierarchical": Release(tree, BOTH),
    "hierarchical, its own inputs": Release(tree, None),
    "krr": Release(lambda: response(1.0), BOTH),
    "one number for each word": Release(Numbers, BOTH),
    "laplace": Release(lambda: DxPrivatizer(clusters(), "laplace", 2.0), BOTH),
    "whole sentences": Release(lambda: SentencePrivatizer(pool(), epsilon=0.5), None),
    "clipped logits": Release(lambda: LanguageModel(True), TEXTS),
}


def verified(release: Release, seed: int, **options: Any) -> ClaimCheck:
    """Verify the claim of a release."""
    options = {"rng": keyed_generator(seed), "workers": release.workers} | options
    return verify_claim(release.make(), inputs=release.inputs, **options)


# The release whose leak is not in the row of its text: by the tools that are given texts.
NEXT_ROW = {"next row": (lambda: NextRow(tree()), "false"), "honest": (tree, "true")}


def beside(release: Any, seed: int, **options: Any) -> bool:
    """Tell whether `verify_companions` passes a release."""
    companions = [[WORDS[1]], [WORDS[2], WORDS[3]]]
    rng = keyed_generator(seed, "companions")
    return verify_companions(release.privatize, WORDS[0], companions, rng=rng, **options).passed


def compared(release: Any, seed: int, **options: Any) -> bool:
    """Tell whether `compare` lets the claim of a release stand."""
    rng = keyed_generator(seed, "texts")
    rows = [" ".join(rng.choice(WORDS, 6)) for _ in range(40)]
    found = compare(
        datasets.Dataset.from_dict({"text": rows}),
        **{"space": tree_space(), "mechanisms": (), "pools": (), "progress": False},
        **{"others": {"release": release}, "seed": seed} | options,
    )
    return found.rows[-1].verified != FALSE_CLAIM


def main() -> None:
    """Run everything and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--repeats", type=int, default=200)
    arguments.add_argument("--runs", type=int, default=20_000, help="of true claims")
    arguments.add_argument("--false-runs", type=int, default=200_000)
    arguments.add_argument("--false-repeats", type=int, default=20, help="of the next row")
    arguments.add_argument("--only", default="", help="releases with this in their names")
    arguments.add_argument("--false-alarm", type=float, default=1e-3)
    arguments.add_argument("--workers", type=int, default=0, help="of true claims")
    options = arguments.parse_args()
    datasets.disable_progress_bars()
    rows: list[dict[str, str]] = []

    def report(name: str, claim: str, flagged: list[bool]) -> None:
        found = f"{sum(flagged)} of {len(flagged)}"
        print(f"{name} ({claim}): flagged {found}", flush=True)
        rows.append({"release": name, "claim": claim, "flagged": found})

    sizes = {"runs": options.runs, "workers": options.workers}
    for name, release in {**FALSE, **TRUE}.items():
        claim = "true" if name in TRUE else "false"
        repeats = options.repeats if claim == "true" else 1
        repeats = options.false_repeats if "next row" in name else repeats
        chosen = sizes if claim == "true" else {"runs": options.false_runs}
        if options.only in name:
            found = (
                verified(release, seed, false_alarm=options.false_alarm, **chosen)
                for seed in range(repeats)
            )
            report(name, claim, [not each.holds for each in found])
    for name, (make, claim) in NEXT_ROW.items():
        if options.only in f"next row {name}":
            repeats = options.repeats if claim == "true" else options.false_repeats
            small = {"draws": options.runs} if claim == "true" else {}
            passed = [beside(make(), seed, **small) for seed in range(repeats)]
            report(f"{name}, verify_companions", claim, [not each for each in passed])
            quick = {"quick": True} if claim == "true" else {}
            passed = [compared(make(), seed, **quick) for seed in range(repeats)]
            report(f"{name}, compare", claim, [not each for each in passed])
    common.report("Claims", rows, options.json)


if __name__ == "__main__":
    main()
