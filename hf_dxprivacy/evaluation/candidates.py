"""Candidates of a comparison: mechanisms, pools and others, and the ε at which each is taken."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.calibration.epsilons import (
    epsilon_for_local_bound,
    epsilon_grid,
    given_epsilons,
)
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, did_you_mean
from hf_dxprivacy.evaluation.peer_candidates import kind_of
from hf_dxprivacy.guarantee import PrivacyGuarantee, upward
from hf_dxprivacy.mechanisms import ExactMechanism, Mechanism
from hf_dxprivacy.privatizers.keyed_noise import noise_source
from hf_dxprivacy.privatizers.privatizer import Privatizer
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.results import ORIGINAL
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

# Shares of running words that come out as they were, at which mechanisms are taken.
STAYING = (0.1, 0.3, 0.5, 0.8)
# A share that is farther off than this does not stand for the one asked for.
SLACK = 0.08
# By default. Draws of "laplace" take longer than all else, so that --quick leaves it out.
USUAL = ("hierarchical", "calibrated", "tem", "laplace", "krr")

# Words that stand for running text, and draws of each where the law is not known.
QUANTILES, DRAWS = 150, 40
# Quarters of octaves above the usual ε.
FARTHER = 32
# Zipf–Mandelbrot: a word of rank r is as frequent as 1/(r + this).
SHIFT = 2.7


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way to release texts, by anything with ``privatize(texts)``; None leaves them as they are.

    `name` is that of a curve: a mechanism, a pool, or what a foreign one is called.
    """

    name: str
    epsilon: float | None = None
    privatizer: Any = None

    @property
    def mechanism(self) -> Mechanism | None:
        """The mechanism, if it is one of this package."""
        return self.privatizer.mechanism if isinstance(self.privatizer, Privatizer) else None

    @property
    def key(self) -> str:
        """What its noise is bound to."""
        law = self.mechanism
        about = "" if law is None else f"{law.space.digest} {law.parameters}"
        return f"{self.name} {self.epsilon} {self.unit} {about} {self.in_clear}"

    @property
    def identity(self) -> str:
        """All that tells it from others, of a program its command and the number it claims."""
        made = self.privatizer
        if isinstance(made, DxPrivatizer | SentencePrivatizer):
            # What is bound to seeds, as an encoder, and the settings.
            about: list[Any] = [made._context]
            with suppress(InvalidValueError):  # a selector that cannot be stored
                about.append(made._settings())
        else:
            stated = (getattr(self.privatizer, name, None) for name in ("claim", "run"))
            about = [None if callable(value) else value for value in stated]
        return f"{self.key} {about}"

    @property
    def _guarantee(self) -> PrivacyGuarantee | None:
        """What is stated in place of a bare claim, by ours or by what wraps one of ours."""
        return getattr(self.privatizer, "guarantee", None)

    @property
    def unit(self) -> str:
        """What one bound is for, and how a release is made: by word, sentence or text."""
        if self._guarantee is not None:
            return str(self._guarantee.unit)
        return "word" if self.privatizer is None else str(getattr(self.privatizer, "unit", "text"))

    @property
    def claim(self) -> str:
        """The guarantee as it is claimed."""
        if (found := self._guarantee) is not None:
            return f"ε = {upward(found.epsilon)} per unit of {found.metric}, for each {found.unit}"
        if self.local is None:
            return f"a bound of its own for any two {self.unit}s"
        finite = math.isfinite(self.local)
        return f"ε = {upward(self.local)} for any two {self.unit}s" if finite else "none"

    @property
    def local(self) -> float | None:
        """The claim as pure local DP of one unit, ∞ where nothing bounds it; None if unknown."""
        if self._guarantee is not None:
            return float(self._guarantee.ldp_epsilon)
        claim = getattr(self.privatizer, "claim", math.inf)
        return None if callable(claim) else float(claim)

    @property
    def in_clear(self) -> str:
        """What is released as it is."""
        privatizer = self.privatizer
        if privatizer is None:
            return "everything"
        if isinstance(privatizer, SentencePrivatizer):
            return "nothing" if privatizer.unit == "text" else "the number of sentences"
        if not isinstance(privatizer, DxPrivatizer):
            return "whatever it leaves"
        found = ["the number of words", "punctuation"]
        found += ["words that are no slots"] if privatizer._selector is not None else []
        found += ["stop words"] if privatizer.stopwords else []
        found += ["words that the space lacks"] if privatizer.oov == "keep" else []
        found += ["letter case"] if privatizer.case == "preserve" else []
        return ", ".join(found)

    def release(self, texts: Sequence[str], seed: int | None = None) -> list[str]:
        """Return a release of texts; with a seed always the same one, for our privatizers."""
        made = self.privatizer
        if made is None:
            return list(texts)
        if isinstance(made, DxPrivatizer | SentencePrivatizer):
            if seed is not None and made.seed is None:
                made = made.with_noise(noise_source(seed, None, None))
            batch = {made.text_columns[0]: list(texts)}
            found = made(batch, list(range(len(texts))))[made.output_columns[0]]
        else:
            found = made.privatize(list(texts))
        if len(found) != len(texts) or not all(isinstance(text, str) for text in found):
            raise InvalidValueError(
                f"expected {self.name!r} to return a text for each of {len(texts)} texts, got "
                f"{len(found)} values that are not all texts"
            )
        return list(found)


def candidates(
    space: EmbeddingSpace,
    mechanisms: Iterable[str],
    epsilon: float | Sequence[float] | Mapping[str, Any] | None,
    pools: Iterable[SentencePool | str],
    others: Mapping[str, Any] | Iterable[Any],
    seed: int,
    bounds: Sequence[float],
) -> Iterator[Candidate]:
    """Return the texts as they are, then mechanisms and pools at several ε, then others.

    Without `epsilon` a mechanism is taken where 10, 30, 50 and 80 % of running words come
    out as they were; a pool at `bounds` of the log-ratio of any two texts. `seed` is of draws.

    Raises:
        InvalidValueError: If there is none, two have a name in common, a mechanism is unknown or
            does not suit the space, or `epsilon` names one that is not compared.
        InvalidTypeError: If an ε is no number, or one of the others cannot privatize.
    """
    if isinstance(mechanisms, str):
        raise InvalidTypeError(f"expected a list of mechanisms, got a str; pass [{mechanisms!r}]")
    mechanisms = list(mechanisms)
    sentences = [
        e if isinstance(e, SentencePool) else SentencePool.from_pretrained(e) for e in pools
    ]
    named = others.items() if isinstance(others, Mapping) else [(_name(o), o) for o in others]
    names = [(p.space.location or "sentences").rstrip("/").rpartition("/")[2] for p in sentences]
    # Others of one name are a curve.
    _require_names([*mechanisms, *names, *dict.fromkeys(title for title, _ in named)])
    for name in mechanisms:
        kind_of(name)
    each = epsilon if isinstance(epsilon, Mapping) else dict.fromkeys(mechanisms, epsilon)
    for key in each:
        if key not in mechanisms:
            remedy = did_you_mean(str(key), mechanisms) or "; name it in mechanisms too"
            listed = ", ".join(mechanisms) or "none"
            raise InvalidValueError(
                f"expected ε of mechanisms that are compared ({listed}), got {key!r}{remedy}"
            )
    yield Candidate(ORIGINAL)
    for name in mechanisms:
        given = each.get(name)
        rng = keyed_generator(seed, "epsilons", name)
        grid = matched(space, name, STAYING, rng) if given is None else given_epsilons(given)
        yield from (Candidate(name, e, DxPrivatizer(space, kind_of(name)(space, e))) for e in grid)
    for name, pool in zip(names, sentences, strict=True):
        for bound in bounds:
            least = epsilon_for_local_bound(pool, "hierarchical", bound)
            made = SentencePrivatizer(pool, epsilon=least)
            yield Candidate(name, made.epsilon, made)
    for title, other in named:
        if not callable(getattr(other, "privatize", None)):
            raise InvalidTypeError(
                f"expected others to have a method privatize(texts), got a {type(other).__name__}; "
                "a function goes through hf_dxprivacy.evaluation.External"
            )
        yield Candidate(title, getattr(other, "epsilon", None), other)


def _require_names(names: Sequence[str]) -> None:
    """Require names, each for one curve."""
    if not names:
        raise InvalidValueError(
            "expected one candidate or more, got none; name mechanisms, pools or others"
        )
    if twice := [name for name, count in Counter([ORIGINAL, *names]).items() if count > 1]:
        raise InvalidValueError(
            f"expected names that differ from each other and from {ORIGINAL!r}, got {twice[0]!r} "
            "twice; name each mechanism and pool once, and give others as a mapping from names"
        )


def _name(other: Any) -> str:
    """Return the name of another; without one it is called after its mechanism or its class."""
    law = getattr(other, "mechanism", None)
    name = getattr(other, "name", None) or getattr(law, "name", type(other).__name__)
    return f"{name}, yours" if isinstance(other, Privatizer) else str(name)


def suiting(space: EmbeddingSpace, quick: bool) -> tuple[list[str], list[str]]:
    """Return the mechanisms to compare over a space by default, and why others are not."""
    names, reasons = [], []
    for name in USUAL:
        if not kind_of(name).suits(space):
            reasons.append(f"{name} is left out: it does not suit the space")
        elif name == "laplace" and quick:
            reasons.append(f"{name} is left out by --quick; --mechanism {name} asks for it")
        elif name == "calibrated" and not space.certificates:
            reasons.append(
                "calibrated is left out: the space has no stored levels, which take minutes; "
                "--mechanism calibrated asks for it"
            )
        else:
            names.append(name)
    return names, reasons


def running_words(space: EmbeddingSpace, count: int = QUANTILES) -> NDArray[np.int64]:
    """Return (count,) ids of words as they come in running text, by rank in the space.

    Most spaces list the most frequent words first. A word of rank r counts as 1/(r + 2.7), the law
    of Zipf and Mandelbrot, and the words are quantiles of that. No private text is looked at.
    """
    ids = np.flatnonzero(~space.is_shape)
    weights = np.cumsum(1.0 / (np.arange(1, len(ids) + 1) + SHIFT))
    shares = (np.arange(count) + 0.5) / count
    return np.asarray(ids[np.searchsorted(weights / weights[-1], shares)])


def matched(
    space: EmbeddingSpace, name: str, staying: Sequence[float], rng: np.random.Generator
) -> list[float]:
    """Return the ε at which about such shares of running words stay, as far as there are any."""
    words, counts = np.unique(running_words(space), return_counts=True)
    grid = epsilon_grid(space, name)
    # Some have noise for large ε only.
    grid += [grid[-1] * 2.0 ** (octave / 4.0) for octave in range(1, FARTHER)]

    @cache
    def share(at: int) -> float:
        """Return the probability that a running word stays; −1 where no such ε can be."""
        try:
            law = kind_of(name)(space, grid[at])
        except InvalidValueError:
            return -1.0
        if isinstance(law, ExactMechanism):
            kept = law.probabilities(words)[np.arange(len(words)), words]
        else:
            kept = (law.sample_repeatedly(words, DRAWS, rng) == words[:, None]).mean(axis=1)
        return float(counts @ kept / counts.sum())

    def first(target: float, low: int = 0) -> int:
        high = len(grid) - FARTHER
        if share(high) < target:
            low, high = high, len(grid) - 1
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if share(middle) < target else (low, middle)
        return low

    chosen = []
    for target in staying:
        high = first(target)
        at = min((k for k in (high - 1, high) if k >= 0), key=lambda k: abs(share(k) - target))
        if abs(share(at) - target) <= SLACK:
            chosen.append(at)
    # One that never comes near any share is shown at the least ε that it can have.
    chosen = chosen or [first(0.0)]
    kind_of(name)(space, grid[chosen[0]])
    return sorted({float(upward(grid[at], 3)) for at in chosen})
