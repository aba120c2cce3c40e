"""Prints digests of seeded releases and of written files, as they are on this processor.

``python processors_program.py POOL`` in an empty folder, where POOL is the folder of a pool.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer, models

from golden_cases import KEY, SEED, SPECIAL, Case, digest, privatizer, selectors
from golden_files import _save, without_folder
from golden_spaces import Law, euclidean_space, laws, poincare_space, texts
from hf_dxprivacy import (
    DxPrivatizer,
    EmbeddingSpace,
    SentencePool,
    SentencePrivatizer,
    SlotPrivatizer,
    TokenPrivatizer,
)
from hf_dxprivacy.evaluation.peer_candidates import PEERS, kind_of
from hf_dxprivacy.mechanisms import MECHANISMS

# Built-in spaces of real vectors, in which words are drawn for many words.
MANY = 1000
REAL = (
    ("wordnet-gloss", ("tem", 8.0), ("laplace", 50.0), ("mahalanobis", 50.0)),
    ("wordnet-poincare", ("tem", 8.0), ("hyperbolic", 32.0)),
    ("english", ("hierarchical", 1.5), ("krr", 8.0)),
)


def released(name: str, space: EmbeddingSpace, law: Law) -> Iterator[Case]:
    """Yield what each privatizer releases by one law."""
    cells, where = texts(space), f"{name}/{law.label}"
    made = kind_of(law.name)(space, law.epsilon, **law.options)
    yield f"{where}/texts", DxPrivatizer(space, made, seed=SEED)({"text": cells})
    yield f"{where}/memoized", DxPrivatizer(space, made, memoize="row", key=KEY)({"text": cells})
    vocabulary = {token: row for row, token in enumerate([*SPECIAL, *space.words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    ids = [[*range(4, 60)], [2, 7, 30, 7, 4, 3, 0]]
    of_tokens = TokenPrivatizer(space, tokenizer, made, seed=SEED)
    yield f"{where}/tokens", of_tokens({"input_ids": ids})
    slots = SlotPrivatizer(space, made, selector=selectors(space)["content"], seed=SEED)
    yield f"{where}/slots", slots({"text": cells})


def releases(pool: SentencePool) -> Iterator[Case]:
    """Yield releases of every mechanism over every kind of space."""
    flat, ball = (
        make().build_hierarchy(progress=False) for make in (euclidean_space, poincare_space)
    )
    own = [Law(name, name, 1.5, {}) for name in ("hierarchical", "krr")]
    peers = [Law(name, name, 300.0 if name == "truncated-gumbel" else 2.0, {}) for name in PEERS]
    asked = {
        "euclidean": (flat, [*laws(flat), *own, *peers]),
        "poincare": (ball, [*laws(ball), *own]),
    }
    assert {law.name for _, each in asked.values() for law in each} == {*MECHANISMS, *PEERS}
    for name, (space, each) in asked.items():
        for law in each:
            yield from released(name, space, law)
    # A factor of the scale is part of the digest of a ball, and so of the key of all noise.
    scaled = ball.rescale(1.0 / ball.neighbour_distances()[1])
    yield (
        "rescaled/tem",
        privatizer(scaled, Law("tem", "tem", 3.0, {}), seed=SEED).privatize(texts(ball)),
    )
    for name, *asked_of in REAL:
        space = EmbeddingSpace.from_pretrained(name)
        text = " ".join(space.words[:: len(space) // MANY])
        for mechanism, epsilon in asked_of:
            made = DxPrivatizer(space, mechanism, epsilon, seed=SEED)
            yield f"{name}/{mechanism}", made.privatize([text])
    sentences = ["The soup was cold. I liked the film!", "A garden in the old city?", ""]
    for mechanism in ("hierarchical", "tem", "laplace"):
        of_sentences = SentencePrivatizer(pool, mechanism, 3.0, unit="sentence", seed=SEED)
        yield f"sentences/{mechanism}", of_sentences({"text": sentences})


def written() -> Iterator[Case]:
    """Yield the files of artifacts, to the last digit."""
    _save(Path(), euclidean_space.__wrapped__(), poincare_space.__wrapped__())
    for path in sorted(Path().rglob("*")):
        if path.is_file() and path.suffix != ".png":
            text = path.read_bytes().decode("utf-8", "surrogateescape")
            kept = without_folder(text, Path.cwd())
            yield str(path), kept.encode("utf-8", "surrogateescape")


if __name__ == "__main__":
    cases = [*releases(SentencePool.from_pretrained(sys.argv[1])), *written()]
    print(json.dumps({key: digest(value) for key, value in cases}))
