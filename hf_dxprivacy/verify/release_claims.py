"""Verification by draws of what is claimed of any release of texts, ours or another's."""

import copy
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache
from itertools import chain, combinations, takewhile
from typing import Any, Literal

import numpy as np

from hf_dxprivacy._notebook import ReprHTML
from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_between,
    require_one_of,
)
from hf_dxprivacy.privatizers.privatizer import Privatizer
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.inputs import chosen_inputs, distinct, of_callable
from hf_dxprivacy.verify.sampling import LEAST_DRAWS, TESTED, check_by_draws, least_log_ratio
from hf_dxprivacy.verify.statements import of_stated_privatizer
from hf_dxprivacy.verify.workers import WorkersCheck, compare_releases

Bound = Callable[[str, str], float]
Function = Callable[[list[str]], list[str]]

# Inputs that are drawn for, and of so many times as many that are given the nearest are looked for.
INPUTS, LOOKED_AT = 40, 5
# Words that no vocabulary holds, of two lengths, and two numbers of one shape.
UNKNOWN = ("qxwvzkj", "zzqxw", "4519", "7302")
# Texts that are released at once.
BATCH = 1 << 14
# Letters of a made-up word, of the shortest run of them that is looked for, and characters of a
# release in which it is.
LETTERS, RUN, WINDOW = 24, 8, 10_000
# Made-up words that count as found, at most.
COUNTED = 500
_LETTERS = re.compile(f"[a-z]{{{RUN},}}")
# Places that releases are compared at, at most; how many inputs stand there, and words in a text.
PLACES, REPEATED, WORDS = 148, 5, 4
# Calls before and after those of the workers, and calls of each worker.
OWN, CALLS = 2, 2


@dataclass(frozen=True)
class ClaimCheck(ReprHTML):
    """Result of `verify_claim`.

    Attributes:
        holds: Whether nothing was found that speaks against the claim. That is no proof of it, and
            without `evidence` only copies and shared noise were looked for.
        reason: What was found, in a sentence, which holds no text of the inputs.
        false_alarm: With which probability, at most, a true claim is said not to hold.
        runs: How many texts or words were released, at most.
        inputs: How many of them differ.
        evidence: The pairs and sets of outputs that were tested, if it came to that.
        noise: The comparison of repeated releases, if there was one.
        not_checked: What was compared with nothing.
    """

    holds: bool
    reason: str
    false_alarm: float
    runs: int
    inputs: int
    evidence: tuple[GuaranteeCheck, ...] = ()
    noise: WorkersCheck | None = None
    not_checked: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values."""
        return asdict(self) | {"evidence": [check.to_dict() for check in self.evidence]}

    def __str__(self) -> str:
        verdict = "CLAIM NOT TRUE"
        if self.holds:
            verdict = "no violation found" if self.evidence else "not tested, no gross fault found"
        said = f"{verdict}: {self.reason} (false alarms: {self.false_alarm:g} at most)"
        return "\n".join([said, *(f"  not checked: {each}" for each in self.not_checked)])


def verify_claim(
    release: Any,
    bound: float | Bound | None = None,
    inputs: Sequence[str] | None = None,
    *,
    runs: int = 200_000,
    false_alarm: float = 1e-3,
    unit: Literal["word", "text"] | None = None,
    workers: int = 2,
    rng: np.random.Generator | None = None,
) -> ClaimCheck:
    """Hold any release of texts to a bound that is claimed for it, by draws.

    Four tests, each with a quarter of the false-alarm rate; the first that fails decides:

    1. *Noise*: calls here, and in worker processes, release the same inputs, in a random order and
       with repetitions. Calls, rows, or words of a text that agree more than independent ones do (a
       permutation test) share their noise, and none of it counts.
    2. *Made-up words*: random strings of 24 letters go in. One that comes out, of its own text or
       of any other, was copied, however seldom: a release that had not read it holds it with
       probability 26⁻²⁴ a place, so that a single one refutes any claim up to about 50. Runs of
       8 letters and more count as well, the shorter the more of them are needed.
    3. *Copies*: how often inputs come out as they are, against how often they come out of their
       nearest neighbours, summed over all inputs.
    4. *Sets of outputs*: the search of `verify_guarantee` on one half of its draws, and
       Clopper–Pearson bounds with Bonferroni's correction on the other. Of texts, which seldom come
       out twice, also the guesses of a naive Bayes classifier, trained on other draws, which input
       a release was made from.

    Of our privatizers also the numbers that `guarantee` states are held to what was found.

    >>> verify_claim(DxPrivatizer("english", "hierarchical", 1.5))
    >>> verify_claim(External(["venv/bin/python", "peer.py"], name="peer", claim=8.0), inputs=words)
    >>> verify_claim(anonymizer.anonymize, 8.0, texts, unit="text", runs=2_000)

    Args:
        release: What has ``privatize(texts)``, such as a `DxPrivatizer`, a `SentencePrivatizer` or
            an `External`; or a function of one text. Unseeded, and without a budget.
        bound: The claim, an upper bound of |ln Pr[M(a)=y]/Pr[M(b)=y]| for any two words or texts,
            as a number or a function of both. By default `release.claim`, or that of its guarantee.
        inputs: Words or texts, best with near ones among them. By default entries of the space of
            a privatizer with their nearest, and unknown words.
        runs: How many inputs are released, about, at least 1,000. A fault that shows in one release
            of n needs some 10·n, one by a factor of two in ε some 100,000.
        false_alarm: In (0, 1): with which probability, at most, a true claim does not hold.
        unit: What the claim is about, "word" or "text". By default that of the release, or "word".
        workers: Processes besides this one that release at the same time, by ``Dataset.map``. With
            0, only repeated calls are compared; what has a method `close`, as `External`, is closed
            between two of them, by which a program starts again.
        rng: Source of the auditor's choices; this process's own by default.

    Raises:
        InvalidTypeError: If there is no claim, or there are no inputs, or no texts come out.
        InvalidValueError: If a number is out of range, there are fewer than two inputs, or nothing
            is claimed of any two of them.
        MissingExtraError: If SciPy or scikit-learn is not installed (extra "audit").
    """
    require_between(0.0, 1.0, false_alarm=false_alarm)
    require_at_least(1_000, runs=runs)
    require_at_least(0, workers=workers)
    rng = rng or process_generator()
    count = max(8, min(INPUTS, runs // 2_000))
    claim = _claim_of(release, bound)
    stated = getattr(release, "guarantee", None)
    claimed_for = str(unit or getattr(release, "unit", None) or getattr(stated, "unit", "word"))
    claimed_for = "text" if claimed_for == "sentence" else claimed_for
    require_one_of(("word", "text"), unit=claimed_for)
    texts = _inputs_of(release, inputs, claim, count, rng)
    if claimed_for == "word" and any(len(text.split()) > 1 for text in texts):
        raise InvalidValueError(
            'expected single words, since the claim is about one, got texts; pass unit="text" '
            "with a bound of whole texts"
        )
    audit = _Audit(_function_of(release), claim, texts, false_alarm / 4.0, rng)
    if math.isinf(min(_or_none(claim, a, b) for a, b in combinations(texts, 2))):
        raise InvalidValueError(
            f"nothing is claimed: the bound is ∞ for any two of {len(texts)} inputs; pass bound= "
            "with what is claimed, or inputs= of which something is"
        )
    noise, unchecked = audit.noise(runs // 5, workers, claimed_for, release)
    result = ClaimCheck(True, "", false_alarm, runs, len(texts), (), noise, unchecked)
    if not noise.passed:
        reason = (
            f"calls, rows or words share their noise: {noise.shared:.0%} of their outputs agree, "
            f"where of independent ones about {noise.expected:.0%} do"
        )
        return replace(result, holds=False, reason=reason)
    copied = audit.made_up_words(runs // 10, claimed_for) or audit.copies(runs // 3)
    if copied:
        return replace(result, holds=False, reason=copied)
    checks = audit.sets_of_outputs(runs // 2, claimed_for)
    false: tuple[str, ...] = ()
    if isinstance(release, Privatizer):
        target = of_callable(audit.function, texts, claim, True, len(texts), rng)
        false, more = of_stated_privatizer(release, target, checks, rng)
        result = replace(result, not_checked=(*unchecked, *more))
    broken = [check for check in checks if not check.passed]
    if broken:
        worst = min(broken, key=lambda check: check.slack)
        found, allowed = worst.log_ratio, worst.allowed
        reason = f"a log-ratio of {found:.3g} at least, where {allowed:.3g} is claimed"
    elif false:
        reason = "; ".join(false)
    elif checks:
        reason = f"nothing above what is claimed in {runs:,} releases of {len(texts)} inputs"
    else:
        reason = "no two inputs have a claim that so many draws could refute"
    if claimed_for == "word" and math.isinf(_or_none(claim, *UNKNOWN[:2])):
        reason += "; nothing is claimed of unknown words"
    return replace(result, holds=not broken and not false, reason=reason, evidence=tuple(checks))


@dataclass(frozen=True, eq=False)
class _Audit:
    """A release, its claim, inputs, the false-alarm rate of each test, and what chooses."""

    function: Function
    claim: Bound
    texts: list[str]
    alpha: float
    rng: np.random.Generator

    def noise(
        self, runs: int, workers: int, unit: str, release: Any
    ) -> tuple[WorkersCheck, tuple[str, ...]]:
        """Compare releases of some inputs by calls in this process and in others."""
        calls = 2 * (2 * OWN + CALLS * workers)
        size = WORDS * max(2, min(PLACES, runs // (2 * calls)) // WORDS)
        # A random order, in which every second one stands again beside itself.
        chosen = self.rng.permutation(len(self.texts))[:REPEATED]
        asked = self.rng.integers(len(chosen), size=size)
        again = np.flatnonzero(self.rng.random(size - 1) < 0.5) + 1
        for place in again:
            asked[place] = asked[place - 1]
        rows = [self.texts[chosen[k]] for k in asked]
        # The same words again, several in a text.
        words = unit == "word" and all(len(row.split()) == 1 for row in rows)
        joined = [" ".join(rows[k : k + WORDS]) for k in range(0, size, WORDS)] if words else []
        # Twice in a call, so that calls of one seed do not agree in all that they release.
        call, close = (rows + joined) * 2, getattr(release, "close", None)
        made = [*chain(*(self.function(call) for _ in range(OWN)))]
        if workers:
            made += _by_workers(self.function, call, workers)
        elif callable(close):
            close()
        made += chain(*(self.function(call) for _ in range(OWN)))
        released = [made[k : k + len(call) // 2] for k in range(0, len(made), len(call) // 2)]
        alone = not workers and not callable(close)
        unchecked = ["noise that processes share (workers=0)"] if alone else []
        texts = [[text.split() for text in each[size:]] for each in released]
        if words and all(len(text) == WORDS for each in texts for text in each):
            asked = np.append(asked, asked + len(chosen))
            released = [[*a[:size], *chain(*b)] for a, b in zip(released, texts, strict=True)]
        else:
            released = [each[:size] for each in released]
            unchecked += ["noise that words of one text share"] if unit == "word" else []
        codes = np.unique(np.array(released, dtype=object), return_inverse=True)[1]
        codes = codes.reshape(len(released), -1)
        return compare_releases(codes, workers, self.alpha, self.rng, asked), tuple(unchecked)

    def made_up_words(self, count: int, unit: str) -> str:
        """Look for words that were copied; return what was found, if it refutes the claim.

        A word w is found at L letters if any release holds a run of L letters of it. Let m words be
        found, each with a claim of b at most against another made-up word. If each of their texts
        had held such another word, no release would have read them, so that all m are found with
        probability (T·(25−L)·26^−L)^m at most, T the number of different places of letters in the
        releases; by the claim it is no more than e^(b·m) times as much. By the union bound over the
        sets of m of n words, m (2^−m) and L, the claim is refuted if

            ln C(n, m) + m·(b + ln 2 + ln T + ln(25−L) − L·ln 26) ≤ ln(alpha/17).
        """
        letters = self.rng.integers(ord("a"), ord("z") + 1, (2 * count, LETTERS), dtype=np.uint8)
        words = [bytes(row).decode("ascii") for row in letters]
        texts = [*words] if unit == "word" else self._with_words(words)
        runs: set[str] = set()
        for start in range(0, count, BATCH):
            for out in self.function(texts[start : min(count, start + BATCH)]):
                runs.update(_LETTERS.findall(out[:WINDOW].lower()))
        longest = _longest_runs(words[:count], runs)
        # Of so many the claim is asked; fewer than were found refute less, never more.
        counted = sorted(longest, key=longest.__getitem__, reverse=True)[:COUNTED]
        claims = {k: _or_none(self.claim, texts[k], texts[count + k]) for k in counted}
        found = sorted((k for k in counted if claims[k] < math.inf), key=claims.__getitem__)
        places = math.log(sum(len(run) - RUN + 1 for run in runs) or 1)
        lengths = range(RUN, LETTERS + 1)
        for length in lengths:
            bounds = np.array([claims[k] for k in found if longest[k] >= length])
            m = np.arange(1, len(bounds) + 1)
            sets = np.cumsum(np.log((count + 1 - m) / m))
            chance = bounds + math.log(2 * (LETTERS + 1 - length)) + places - length * math.log(26)
            if (sets + m * chance <= math.log(self.alpha / len(lengths))).any():
                whole = sum(each == LETTERS for each in longest.values())
                if whole:
                    said = f"{whole:,} of {count:,} made-up ones"
                    return f"unknown words come out as they are, {said}"
                some = sum(each >= length for each in longest.values())
                said = f"{length} or more of {some:,} of {count:,} made-up words"
                return f"letters of unknown words come out, {said}"
        return ""

    def _with_words(self, words: list[str]) -> list[str]:
        """Return inputs with one word replaced by each of these, the same in both halves."""
        texts, split = [], [text.split() or [""] for text in self.texts]
        for k, word in enumerate(words):
            turn, at = divmod(k % (len(words) // 2), len(split))
            row = [*split[at]]
            row[turn % len(row)] = word
            texts.append(" ".join(row))
        return texts

    def copies(self, runs: int) -> str:
        """Compare how often inputs come out of themselves and of their nearest ones.

        If Pr[M(x)=x] ≤ e^b·Pr[M(x')=x] for each pair, then hits of the former, each kept with
        probability e^−b, are no more likely than hits of the latter. Sums of unlike trials are
        less spread than binomial ones (Hoeffding 1956), so that their bounds hold.
        """
        pairs = [(x, *min((self.claim(x, y), y) for y in self.texts if y != x)) for x in self.texts]
        pairs = [pair for pair in pairs if math.isfinite(pair[1])]
        if not pairs or not (each := runs // 2 // len(pairs)):
            return ""
        hits, trials = np.zeros(2, dtype=np.int64), each * len(pairs)
        for x, b, nearest in pairs:
            for start in range(0, each, BATCH):
                size = min(BATCH, each - start)
                own = self.rng.permutation(np.arange(2 * size) < size)
                same = np.array(self.function([x if one else nearest for one in own])) == x
                kept = self.rng.random(size) < math.exp(-b)
                hits += np.array([np.count_nonzero(same[own] & kept), np.count_nonzero(same[~own])])
        least = least_log_ratio(int(hits[0]), int(hits[1]), trials, self.alpha)
        said = f"inputs come out as they are {math.exp(least):.3g} times as often as is claimed"
        return said if least > 0 else ""

    def sets_of_outputs(self, runs: int, unit: str) -> list[GuaranteeCheck]:
        """Search for sets of outputs that are too likely, and test them; nothing if none can be."""
        views = [self.function]
        if unit == "text":
            runs //= 3
            views.append(self._guessing(runs))
        found = []
        for view in views:
            target = of_callable(view, self.texts, self.claim, True, len(self.texts), self.rng)
            least = target.allowed[~np.eye(len(self.texts), dtype=bool)].min()
            enough = runs >= 2 * LEAST_DRAWS * len(self.texts)
            if enough and least <= math.log(runs / (4 * TESTED)):
                found.append(check_by_draws(target, runs, self.alpha / len(views), self.rng))
        return found

    def _guessing(self, runs: int) -> Function:
        """Return the release, followed by a guess which input it was made from."""
        text = require("sklearn.feature_extraction.text", "audit")
        counts = text.HashingVectorizer(
            n_features=1 << 18, alternate_sign=False, norm=None, token_pattern=r"\S+"
        )
        labels = np.repeat(np.arange(len(self.texts)), runs // len(self.texts))
        drawn: list[str] = []
        for start in range(0, len(labels), BATCH):
            drawn += self.function([self.texts[k] for k in labels[start : start + BATCH]])
        model = require("sklearn.naive_bayes", "audit").MultinomialNB()
        model.fit(counts.transform(drawn), labels)
        return lambda texts: [
            str(guess) for guess in model.predict(counts.transform(self.function(texts)))
        ]


def _function_of(release: Any) -> Function:
    if isinstance(release, DxPrivatizer):
        # A copy, whose share of unknown words is not that of the user's data, nor worth a warning.
        release = copy.copy(release)
        release._seen[2] = True
    privatize = getattr(release, "privatize", None)
    if privatize is None and not callable(release):
        raise InvalidTypeError(
            "expected a release with privatize(texts), or a function of a text, got a "
            f"{type(release).__name__}"
        )

    def function(texts: list[str]) -> list[str]:
        outputs = [release(text) for text in texts] if privatize is None else privatize(texts)
        if len(outputs) != len(texts) or not all(isinstance(text, str) for text in outputs):
            raise InvalidTypeError("expected the release to return a string for each text")
        return list(outputs)

    return function


def _claim_of(release: Any, bound: float | Bound | None) -> Bound:
    if bound is None:
        guarantee = getattr(release, "guarantee", None)
        bound = getattr(release, "claim", None) if guarantee is None else guarantee.bound
    if bound is None:
        raise InvalidTypeError("expected bound= with what is claimed, which the release lacks")
    # Asked for the same pairs by several tests, and symmetric.
    claimed = cache(bound if callable(bound) else lambda _a, _b: float(bound))
    return lambda a, b: 0.0 if a == b else claimed(*sorted((a, b)))


def _inputs_of(
    release: Any, given: Sequence[str] | None, claim: Bound, count: int, rng: np.random.Generator
) -> list[str]:
    """Return so many inputs, with near ones among them."""
    if given is None:
        if not isinstance(release, Privatizer):
            raise InvalidTypeError("expected inputs= with words or texts to release")
        chosen = chosen_inputs(release.mechanism, known := count - len(UNKNOWN), rng)[:known]
        return [*(release.space.words[k] for k in chosen), *UNKNOWN]
    different = distinct(given, "inputs")
    if len(different) <= count:
        return different
    some = [different[k] for k in rng.permutation(len(different))[: LOOKED_AT * count]]
    near = {x: min((claim(x, y), k) for k, y in enumerate(some) if y != x) for x in some}
    # Those at distance 0 first: whatever tells them apart is a fault.
    first = sorted(some, key=lambda x: near[x][0] > 0.0)[: count // 2]
    return list(dict.fromkeys([*first, *(some[near[x][1]] for x in first)]))


def _or_none(claim: Bound, a: str, b: str) -> float:
    """Return the claim; ∞, which is none, where it knows no such words."""
    try:
        return claim(a, b)
    except (LookupError, ValueError):
        return math.inf


def _longest_runs(words: Sequence[str], runs: Iterable[str]) -> dict[int, int]:
    """Return how many letters in a row of each word are in any run, of those with `RUN` or more."""
    holds: dict[str, list[tuple[int, int]]] = {}
    for k, word in enumerate(words):
        for at in range(len(word) - RUN + 1):
            holds.setdefault(word[at : at + RUN], []).append((k, at))
    longest: dict[int, int] = {}
    for run in runs:
        for start in range(len(run) - RUN + 1):
            for k, at in holds.get(run[start : start + RUN], ()):
                if longest.get(k, 0) < LETTERS - at:
                    letters = zip(words[k][at:], run[start:], strict=False)
                    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], letters))
                    longest[k] = max(same, longest.get(k, 0))
    return longest


def _by_workers(function: Function, texts: list[str], workers: int) -> list[str]:
    """Return what calls in worker processes release, call by call."""
    from datasets import Dataset

    mapped = Dataset.from_dict({"text": texts * (workers * CALLS)}).map(
        lambda batch: {"text": function(batch["text"])},
        batched=True,
        batch_size=len(texts),
        num_proc=workers,
        load_from_cache_file=False,
        new_fingerprint="verify-claim",
    )
    return list(mapped["text"][:])
