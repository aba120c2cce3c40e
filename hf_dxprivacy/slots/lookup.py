"""How likely released n-grams make each word of a text, and which words they cover."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.slots.grams import Floats, Grams, Ids
from hf_dxprivacy.slots.symbols import END, Symbols

_NONE = -1


def transitions(grams: Grams, symbols: Symbols) -> Floats:
    """Return the probability of each symbol after the longest released context before it.

    A context is a gram with released continuations; a symbol that is not among them has the
    probability 0 there. Without any context it is the symbol's share of all words.

    Args:
        grams: What was released.
        symbols: (N,) codes of records, each from `START` to `END`.

    Returns:
        (N,) probabilities.
    """
    result = grams.probability[symbols]
    for length, contexts, continued in _walk(grams, symbols):
        informed = (contexts != _NONE) & grams.expanded[contexts]
        probability = np.where(continued != _NONE, grams.probability[continued], 0.0)
        result[length:][informed] = probability[informed]
    return result


def covered(grams: Grams, symbols: Symbols) -> NDArray[np.bool_]:
    """Tell which symbols are part of a released gram of two symbols or more.

    Args:
        grams: What was released.
        symbols: (N,) codes of records, each from `START` to `END`.

    Returns:
        (N,) bools.
    """
    result = np.zeros(len(symbols), dtype=bool)
    for length, _, continued in _walk(grams, symbols):
        hit = continued != _NONE
        for offset in range(length + 1):
            result[offset : offset + len(hit)] |= hit
    return result


def _walk(grams: Grams, symbols: Symbols) -> Iterator[tuple[int, Ids, Ids]]:
    """Yield, by length, the node of the gram from each position, and where the next symbol leads.

    `_NONE` where that is not released, or would go beyond the end of a record.
    """
    nodes = symbols.astype(np.int64)
    for length in range(1, len(grams.levels)):
        following = symbols[length:].astype(np.int64)
        nodes = np.where(symbols[length - 1 : -1] == END, _NONE, nodes[: len(following)])
        continued = np.where(nodes != _NONE, grams.child(nodes, following), _NONE)
        yield length, nodes, continued
        nodes = continued
