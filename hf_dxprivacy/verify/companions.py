"""Test that what is released of a text does not depend on the texts beside it.

The guarantee of a look-up rests on its being a function of the text alone. An encoder that was
fitted on the private texts, or a pool made of them, breaks that: another text changes the entry of
this one. No pair of texts that are released by themselves shows it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from hf_dxprivacy.errors import (
    InvalidValueError,
    require_at_least,
    require_between,
)
from hf_dxprivacy.randomness import process_generator
from hf_dxprivacy.verify.check import GuaranteeCheck
from hf_dxprivacy.verify.inputs import AuditTarget, Ids
from hf_dxprivacy.verify.sampling import check_by_draws


def verify_companions(
    release: Callable[[list[str]], Sequence[object]],
    text: str,
    companions: Sequence[Sequence[str]],
    *,
    draws: int = 100_000,
    copies: int = 1000,
    alpha: float = 1e-3,
    rng: np.random.Generator | None = None,
) -> GuaranteeCheck:
    """Release copies of a text beside different texts, and compare what comes out.

    The texts stand in a random order, before, between and after the copies. Each row is released
    independently of the others if it is released as it should be, so that all laws are the same,
    whatever stands beside it: the log-ratio of every output is 0. As in `verify_guarantee` one half
    of the draws looks for an output that tells two data sets apart, and the other half tests it.

    >>> verify_companions(privatizer.privatize, "The soup was cold.", [["Hello."], reviews])
    >>> def release(texts):
    ...     encoder = WordEncoder("english").fitted(texts)  # wrong: from private texts
    ...     pool = SentencePool.from_sentences(public, encoder)
    ...     return SentencePrivatizer(pool, epsilon=2.0).privatize(texts)
    >>> verify_companions(release, "The soup was cold.", [["Hello."], reviews])

    Args:
        release: All that is done with a private data set: from a list of texts to as many
            releases, in order. Unseeded.
        text: The text whose release is looked at.
        companions: Two or more lists of texts, each of which is once beside it.
        draws: How many releases of the text are drawn in all.
        copies: How often the text is in a data set; so many draws come of one call.
        alpha: False-alarm rate in (0, 1).
        rng: Source of orders and choices among outputs; this process's own by default.

    Returns:
        What was found; `worst` names two of the data sets, and `allowed` is 0.

    Raises:
        InvalidValueError: If a number is out of range, there are too few data sets or draws, or
            not as many releases as texts.
    """
    require_between(0.0, 1.0, alpha=alpha)
    require_at_least(1, draws=draws, copies=copies)
    require_at_least(2, "nothing to compare", companions=len(companions))
    codes: dict[object, int] = {}
    rng = rng or process_generator()

    def draw(positions: Ids) -> Ids:
        drawn = np.empty(len(positions), dtype=np.int64)
        for position in np.unique(positions).tolist():
            places = np.flatnonzero(positions == position)
            texts = [text] * copies + list(companions[position])
            for part in (places[start : start + copies] for start in range(0, len(places), copies)):
                # In a random order: companions stand before, between and after the copies.
                order = rng.permutation(len(texts))
                released = release([texts[k] for k in order])
                if len(released) != len(texts):
                    raise InvalidValueError(
                        f"expected {len(texts)} releases of as many texts, got {len(released)}"
                    )
                outputs = [released[at] for at in np.argsort(order)[: len(part)]]
                drawn[part] = [codes.setdefault(output, len(codes)) for output in outputs]
        return drawn

    names = tuple(f"beside companions[{number}]" for number in range(len(companions)))
    allowed = np.zeros((len(names), len(names)))
    target = AuditTarget(names, allowed, draw, lambda output: str(list(codes)[output]))
    return check_by_draws(target, draws, alpha, rng)
