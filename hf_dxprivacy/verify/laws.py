"""Verification of the guarantee that a mechanism states."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from hf_dxprivacy.errors import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_between,
    require_one_of,
)
from hf_dxprivacy.mechanisms import ExactMechanism, Mechanism
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.exact import check_exactly
from hf_dxprivacy.verify.inputs import chosen_inputs, of_callable, of_mechanism
from hf_dxprivacy.verify.sampling import check_by_draws
from hf_dxprivacy.verify.statements import (
    COMPARED,
    Evidence,
    Statements,
    of_stated_mechanism,
    of_stated_privatizer,
)

# How many inputs are drawn for, unless a number is given.
INPUTS = 200


def verify_guarantee(
    mechanism: Mechanism | DxPrivatizer | SentencePrivatizer | Callable[..., object],
    words: Sequence[str] | None = None,
    bound: Callable[[str, str], float] | None = None,
    *,
    method: Literal["exact", "sampling"] | None = None,
    inputs: int | None = None,
    draws: int = 1_000_000,
    alpha: float = 1e-3,
    batched: bool = True,
    rng: np.random.Generator | None = None,
    progress: bool = True,
) -> GuaranteeCheck:
    """Compare what comes out of pairs of inputs with the ε·d that is claimed for them.

    Exponential mechanisms, among them "hierarchical" and "krr", know their law, and all their pairs
    of inputs are compared exactly. From everything else is drawn: pairs that are near (where ε·d is
    small and faults show), far, in sparse and dense neighbourhoods, and the unknown word are
    searched for a set of outputs that is too likely, and what was found is tested on fresh draws.
    That finds faults; it cannot prove that there are none.

    >>> verify_guarantee(CalibratedExponential(space, 2.0))
    >>> verify_guarantee(MultivariateLaplace(space, 8.0), draws=10_000_000)
    >>> verify_guarantee(privatizer, ["cat", "dog", "qwxz"])
    >>> verify_guarantee(foreign.replace_word, words, lambda a, b: 8 * space.distance(a, b),
    ...                  batched=False)

    Args:
        mechanism: A mechanism, held to its `certified_epsilon`, and its `guarantee`, `id_bound`
            and exact level to what was found; a privatizer of texts or sentences, whose `privatize`
            is held to `guarantee.bound` on the texts in `words`; or any callable that turns a list
            of words into a list of words, each drawn independently.
        words: For a privatizer or a callable, the inputs, at best with near ones, and unknown ones,
            among them.
        bound: For a callable, the ε·d claimed for two words, symmetric; ∞ where nothing is.
        method: "exact" or "sampling"; by default exact wherever the law is known. Draws from an
            exponential mechanism show whether its sampler follows its law.
        inputs: Look at so many inputs, chosen as above, the unknown word besides. By default all
            of them for the exact method, in time quadratic in the vocabulary, and 200 for draws.
        draws: How many words are drawn, at least 40 for each input.
        alpha: False-alarm rate in (0, 1): the probability, at most, with which something that
            keeps its bounds and draws independently does not pass.
        batched: Whether a callable takes a list of words, or one word.
        rng: Source of the draws from a mechanism, and of the choice of inputs; this process's own
            by default.
        progress: Show a bar on the standard error stream if that is a terminal.

    Returns:
        What was found. `passed` is False only if a log-ratio is above ε·d, beyond rounding and,
        for draws, with the confidence asked for, or if the mechanism states a number that is too
        small.

    Raises:
        InvalidValueError: If a number is out of range, or the draws are too few.
        InvalidTypeError: If the arguments do not go together, or a callable returns no words.
        MissingExtraError: If SciPy is not installed, for draws (extra "audit").
    """
    require_between(0.0, 1.0, alpha=alpha)
    require_at_least(1, draws=draws)
    if inputs is not None:
        require_at_least(2, inputs=inputs)
    if method is not None:
        require_one_of(("exact", "sampling"), method=method)
    if method == "exact" and not isinstance(mechanism, ExactMechanism):
        raise InvalidTypeError(
            "expected a mechanism that knows its probabilities ('hierarchical', 'calibrated', "
            "'tem', 'krr') for method='exact'; leave method= out to draw"
        )
    rng = rng or process_generator()
    privatizer = mechanism if isinstance(mechanism, (DxPrivatizer, SentencePrivatizer)) else None
    if privatizer is not None:
        mechanism, bound = _of_privatizer(privatizer, bound)
    if not isinstance(mechanism, Mechanism):
        if not callable(mechanism) or words is None or bound is None:
            raise InvalidTypeError(
                "expected a mechanism, or a callable with words= and bound=, such as "
                "verify_guarantee(replace_word, words, bound); a privatizer needs words= only"
            )
        target = of_callable(mechanism, words, bound, batched, inputs or INPUTS, rng)
        found = check_by_draws(target, draws, alpha, rng, progress)
        if privatizer is None:
            return found
        return _with(found, of_stated_privatizer(privatizer, target, [found], rng))
    if words is not None or bound is not None:
        raise InvalidTypeError("a mechanism has its own words and bound; leave words= and bound=")
    if isinstance(mechanism, ExactMechanism) and method != "sampling":
        ids = None if inputs is None else chosen_inputs(mechanism, inputs, rng)
        return check_exactly(mechanism, ids, rng=rng, progress=progress)
    target = of_mechanism(mechanism, inputs or INPUTS, rng)
    found = check_by_draws(target, draws, alpha, rng, progress)
    # What it states, at some of its inputs.
    some = rng.permutation(len(target.inputs))[:COMPARED]
    ids = mechanism.space.ids([target.inputs[position] for position in some.tolist()])
    evidence = Evidence(ids, target.allowed[np.ix_(some, some)], float(target.allowed.max()))
    return _with(found, of_stated_mechanism(mechanism, evidence))


def _with(found: GuaranteeCheck, statements: Statements) -> GuaranteeCheck:
    false, unchecked = statements
    passed = found.passed and not false
    return replace(found, passed=passed, false_statements=false, not_checked=unchecked)


def _of_privatizer(
    privatizer: DxPrivatizer | SentencePrivatizer, bound: object
) -> tuple[Callable[..., object], Callable[[str, str], float]]:
    """Return what a privatizer does to texts, and what it promises for them."""
    if bound is not None:
        raise InvalidTypeError("a privatizer has its own bound; leave bound= out")
    if privatizer.seed is not None or privatizer.memoize is not None:
        raise InvalidValueError(
            "draws with a seed or a key are not independent; audit the same privatizer without"
        )
    return privatizer.privatize, privatizer.guarantee.bound
