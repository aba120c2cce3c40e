"""Releases with false claims, which `verify_claim` has to flag, and true ones, which it may not.

Each false one beside a true one that it is easily taken for. Every true one is verified many times;
a share of them above the stated false-alarm rate would be a fault of the audit.

    python benchmarks/claims.py
    python benchmarks/claims.py --repeats 10 --workers 2
"""

import functools
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import datasets
import numpy as np

import common
from faulty_mechanisms import clusters
from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.audit import ClaimCheck, verify_claim
from hf_dxprivacy.evaluation import External
from hf_dxprivacy.privatizers.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.randomness import keyed_generator, process_generator
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.spaces import EmbeddingSpace

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
    "claims half its ε": Release(lambda: HalfClaimed(tree()), BOTH, "times as often as is claimed"),
    "shares noise between workers": Release(SharedNoise, WORDS, "share their noise", 2),
    "same seed in every process": Release(seeded_program, WORDS, "share their noise", 2),
    "same seed in every call": Release(SameSeed, WORDS, "share their noise"),
    "unclipped logits": Release(lambda: LanguageModel(False), TEXTS, "a log-ratio of"),
}
TRUE = {
    "hierarchical": Release(tree, BOTH),
    "hierarchical, its own inputs": Release(tree, None),
    "krr": Release(lambda: response(1.0), BOTH),
    "laplace": Release(lambda: DxPrivatizer(clusters(), "laplace", 2.0), BOTH),
    "whole sentences": Release(lambda: SentencePrivatizer(pool(), epsilon=0.5), None),
    "clipped logits": Release(lambda: LanguageModel(True), TEXTS),
}


def verified(release: Release, seed: int, **options: Any) -> ClaimCheck:
    """Verify the claim of a release."""
    options = {"rng": keyed_generator(seed), "workers": release.workers} | options
    return verify_claim(release.make(), inputs=release.inputs, **options)


def main() -> None:
    """Run everything and print the table."""
    arguments = common.parser(__doc__)
    arguments.add_argument("--repeats", type=int, default=200)
    arguments.add_argument("--runs", type=int, default=20_000, help="of true claims")
    arguments.add_argument("--false-runs", type=int, default=100_000)
    arguments.add_argument("--false-alarm", type=float, default=1e-3)
    arguments.add_argument("--workers", type=int, default=0, help="of true claims")
    options = arguments.parse_args()
    datasets.disable_progress_bars()
    rows = []
    for name, release in FALSE.items():
        found = verified(release, 0, runs=options.false_runs, false_alarm=options.false_alarm)
        print(f"{name}: {found}", flush=True)
        rows.append({"release": name, "claim": "false", "flagged": f"{not found.holds:d} of 1"})
    for name, release in TRUE.items():
        flagged = 0
        for seed in range(options.repeats):
            found = verified(
                release,
                seed,
                runs=options.runs,
                false_alarm=options.false_alarm,
                workers=options.workers,
            )
            flagged += not found.holds
        print(f"{name}: flagged {flagged} of {options.repeats}", flush=True)
        rows.append(
            {"release": name, "claim": "true", "flagged": f"{flagged} of {options.repeats}"}
        )
    common.report("Claims", rows, options.json)


if __name__ == "__main__":
    main()
