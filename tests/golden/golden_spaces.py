"""Spaces, texts and mechanisms of the golden cases: made of whole numbers, the same everywhere."""

import hashlib
from collections.abc import Iterator
from functools import cache
from itertools import islice, product
from string import ascii_lowercase
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import EmbeddingSpace

BUILT_IN = ("wordnet-gloss", "wordnet-poincare")

# Out of vocabulary in every space.
UNKNOWN = "zqxzork"


class Law(NamedTuple):
    """A mechanism as it is asked for.

    Attributes:
        label: What it is called in the keys of the cases.
        name: Its name in `hf_dxprivacy.mechanisms`.
        epsilon: ε.
        options: Its own options.
    """

    label: str
    name: str
    epsilon: float
    options: dict[str, Any]


def tiny_words(size: int) -> list[str]:
    """Return distinct words of four letters."""
    names = ("w" + "".join(letters) for letters in product(ascii_lowercase, repeat=3))
    return list(islice(names, size))


def _numbers(name: str, rows: int, columns: int) -> NDArray[np.float64]:
    """Return (rows, columns) whole numbers, about normal, with a standard deviation of 148."""
    data = hashlib.shake_256(name.encode()).digest(4 * rows * columns)
    signed = np.frombuffer(data, dtype=np.int8).astype(np.float64)
    return signed.reshape(rows, columns, 4).sum(axis=2)


@cache
def euclidean_space() -> EmbeddingSpace:
    """Make 400 words in 8 dimensions, in clusters of uneven density."""
    centers, offsets = _numbers("centers", 20, 8), _numbers("offsets", 400, 8)
    spread = 2.0 ** -(np.arange(400) % 20 % 4)[:, None]
    # Multiples of 1/1024: no digit depends on how a processor adds.
    vectors = (2.0 * centers[np.arange(400) % 20] + spread * offsets) / 128.0
    return EmbeddingSpace.from_vectors(tiny_words(400), vectors.astype(np.float32))


@cache
def poincare_space() -> EmbeddingSpace:
    """Make 300 words in a 4-d ball, many of them near its boundary, scaled."""
    directions = _numbers("directions", 300, 4)
    lengths = np.sqrt((directions**2).sum(axis=1, keepdims=True))
    radii = 1.0 - 0.5 ** (1 + np.arange(300) % 12)[:, None]
    points = np.round(directions / lengths * radii * 2.0**24) / 2.0**24
    return EmbeddingSpace.from_vectors(tiny_words(300), points, metric="poincare", scale=0.5)


def spaces() -> Iterator[tuple[str, EmbeddingSpace]]:
    """Yield each space with its name."""
    yield "euclidean", euclidean_space()
    yield "poincare", poincare_space()
    for name in BUILT_IN:
        yield name, EmbeddingSpace.from_pretrained(name)


def laws(space: EmbeddingSpace) -> list[Law]:
    """Return the mechanisms that a space allows."""
    small = len(space) <= 1000
    rate = 3.0 if small else 8.0
    exponential = [
        Law("tem", "tem", rate, {}),
        Law("tem-gamma", "tem", rate, {"gamma": 4.0}),
        Law("calibrated", "calibrated", rate, {}),
    ]
    if small:
        # In a large space another β than the usual one would be calibrated for minutes.
        exponential.append(Law("calibrated-beta", "calibrated", 5.0, {"beta": 0.01}))
    if space.metric == "poincare":
        # Riemannian noise exists above (n − 1)/scale only: 6 and 31 in these spaces.
        rate, lebesgue = (7.0, 3.0) if small else (32.0, 10.0)
        return [
            *exponential,
            Law("hyperbolic", "hyperbolic", rate, {}),
            Law("hyperbolic-lebesgue", "hyperbolic", lebesgue, {"noise": "lebesgue"}),
            Law("hyperbolic-resample", "hyperbolic", rate, {"resample": 0.1}),
        ]
    rate = 6.0 if small else 50.0
    return [
        *exponential,
        Law("laplace", "laplace", rate, {}),
        Law("laplace-resample", "laplace", rate, {"resample": 0.1, "resample_neighbours": 20}),
        Law("mahalanobis", "mahalanobis", rate, {}),
        Law("mahalanobis-0", "mahalanobis", rate, {"lam": 0.0}),
        Law("mahalanobis-resample", "mahalanobis", rate, {"lam": 0.25, "resample": 0.01}),
    ]


def some_words(space: EmbeddingSpace) -> list[str]:
    """Return twelve words of a space; ordinary ones of a built-in."""
    if len(space) <= 1000:
        return list(space.words[5::23][:12])
    return "soup cold lamp river doctor green house walk music bread winter paper".split()


def texts(space: EmbeddingSpace) -> list[str | None]:
    """Return texts with punctuation, upper case, unknown words, no words, and one twice."""
    w = some_words(space)
    return [
        f"The {w[0]} was {w[1]}.",
        f"{w[2].title()} -- {w[3].upper()}, the {w[4]}'s {UNKNOWN}!",
        "",
        f"{w[5]}\n\t{w[5]} {w[5]}; {w[6]}/{w[7]} (the {w[8]}) 3 {w[9]}-{w[10]} ",
        None,
        "... ?!",
        " ".join(5 * w),
        f"The {w[0]} was {w[1]}.",
        f"{UNKNOWN} the {w[11]}",
    ]


def token_lists(space: EmbeddingSpace) -> list[list[str | None] | None]:
    """Return rows of tokens, some of them no words."""
    w = some_words(space)
    return [["The", w[0], ",", w[1]], [w[2], None, UNKNOWN.upper()], [], None, [w[3].title()] * 3]
