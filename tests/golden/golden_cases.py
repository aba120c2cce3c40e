"""Golden cases: what the public interface gives under fixed seeds, as short digests by key.

Digests are of words, ids and texts, never of floating-point numbers, which depend on the processor.
Numbers that are recorded are rounded to six digits. Only public names are used here, so that the
same file judges the package before and after its insides are rebuilt.
"""

import hashlib
import importlib
import inspect
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
from tokenizers import Tokenizer, models

from golden_spaces import (
    Law,
    euclidean_space,
    laws,
    poincare_space,
    some_words,
    spaces,
    texts,
    token_lists,
)
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SlotPrivatizer, TokenPrivatizer
from hf_dxprivacy.calibration import privacy_statistics, suggest_epsilon
from hf_dxprivacy.evaluation.peer_candidates import PEERS
from hf_dxprivacy.mechanisms import MECHANISMS
from hf_dxprivacy.slots import (
    ContentWordSelector,
    LowTransitionSelector,
    Selector,
    ShareSelector,
    TagColumnSelector,
)
from hf_dxprivacy.verify import verify_guarantee

SEED = 20_240_607
KEY = bytes(range(64))

PUBLIC = (
    "hf_dxprivacy",
    "hf_dxprivacy.evaluation",
    "hf_dxprivacy.calibration",
    "hf_dxprivacy.distributed",
    "hf_dxprivacy.mechanisms",
    "hf_dxprivacy.slots",
    "hf_dxprivacy.training",
    "hf_dxprivacy.verify",
)

Case = tuple[str, Any]


def digest(value: Any) -> str:
    """Return a short digest of JSON-ready values or bytes."""
    data = value if isinstance(value, bytes) else json.dumps(_plain(value)).encode()
    return hashlib.sha256(data).hexdigest()[:20]


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_plain(inner) for inner in value]
    if isinstance(value, np.generic):
        return value.item()
    return value


def rounded(text: str) -> str:
    """Round the numbers with a fraction in a text to six digits."""
    return re.sub(r"-?\d+\.\d+(e[+-]?\d+)?", lambda found: f"{float(found[0]):.6g}", text)


# Privatizers


def privatizer(space: EmbeddingSpace, law: Law, **arguments: Any) -> DxPrivatizer:
    """Make the privatizer of a law."""
    return DxPrivatizer(space, law.name, law.epsilon, **law.options, **arguments)


def entry_points(made: Any, column: str, cells: list[Any], more: dict[str, Any]) -> Iterator[Case]:
    """Yield what comes out of each way in that a privatizer of texts or tokens has.

    Args:
        made: The privatizer.
        column: The column that it reads and overwrites.
        cells: What is in it.
        more: Other columns.
    """
    rows, batch = list(range(10, 10 + len(cells))), {column: cells, **more}
    yield "dict", made(batch, rows)
    yield "dict-no-indices", made(batch)
    yield "single", [made({n: v[i] for n, v in batch.items()}, r) for i, r in enumerate(rows)]
    yield "arrow", made(pa.table(batch), rows).to_pydict()
    yield "pandas", _listed(made(pd.DataFrame(batch), rows).to_dict("list"))
    yield "polars", made(pl.DataFrame(batch), rows).to_dict(as_series=False)


def _listed(columns: dict[str, Any]) -> dict[str, Any]:
    """Write missing values of pandas as None, in every version of it."""
    return {n: [None if v is pd.NA or v != v else v for v in c] for n, c in columns.items()}


def texts_of(name: str, space: EmbeddingSpace) -> Iterator[Case]:
    """Yield the releases of texts, by mechanism, way in and source of noise."""
    cells, tokens = texts(space), token_lists(space)
    stars = {"stars": list(range(len(cells)))}
    users = {"author": ["ann", "bob", "ann", "bob", "ann", "bob", "ann", "bob", "eve"]}
    for law in laws(space):
        seeded = privatizer(space, law, seed=SEED)
        for entry, value in entry_points(seeded, "text", cells, stars):
            yield f"{name}/{law.label}/{entry}", value
        yield f"{name}/{law.label}/privatize", seeded.privatize(cells)
        yield f"{name}/{law.label}/privatize-text", seeded.privatize(cells[0])
        yield f"{name}/{law.label}/tokens", seeded({"text": tokens}, range(len(tokens)))
        split = privatizer(space, law, seed=SEED, is_split_into_words=True)
        yield f"{name}/{law.label}/tokens-no-indices", split({"text": tokens})
        by_row = privatizer(space, law, memoize="row", key=KEY)
        yield f"{name}/{law.label}/memoize-row", by_row({"text": cells, **stars})
        yield f"{name}/{law.label}/memoize-row-arrow", by_row(pa.table({"text": cells})).to_pydict()
        yield f"{name}/{law.label}/memoize-row-privatize", by_row.privatize(cells)
        by_user = privatizer(space, law, memoize="user", user_column="author", key=KEY)
        yield f"{name}/{law.label}/memoize-user", by_user({"text": cells, **users})
        yield (
            f"{name}/{law.label}/memoize-user-polars",
            by_user(pl.DataFrame({"text": cells, **users})).to_dict(as_series=False),
        )


def samples_of(name: str, space: EmbeddingSpace) -> Iterator[Case]:
    """Yield draws of the mechanisms themselves."""
    ids = np.append(np.arange(0, len(space), len(space) // 40), [-1, -1])
    for law in laws(space):
        mechanism = MECHANISMS[law.name](space, law.epsilon, **law.options)
        yield f"{name}/{law.label}/sample", mechanism.sample(ids, _rng())
        yield f"{name}/{law.label}/sample-batches", mechanism.sample(np.tile(ids, 100), _rng())
        yield f"{name}/{law.label}/sample-repeatedly", mechanism.sample_repeatedly(ids, 7, _rng())
        if hasattr(mechanism, "probabilities") and len(space) <= 1000:
            law_of_words = [f"{p:.6g}" for p in mechanism.probabilities(ids).ravel()]
            yield f"{name}/{law.label}/probabilities", law_of_words


def peers() -> Iterator[Case]:
    """Yield draws, texts and promises of the mechanisms of other papers."""
    space = euclidean_space().build_hierarchy(progress=False)
    ids = np.append(np.arange(0, len(space), 10), [-1, -1])
    for name in PEERS:
        law = Law(name, name, 300.0 if name == "truncated-gumbel" else 2.0, {})
        mechanism = PEERS[name](space, law.epsilon)
        yield f"{name}/sample", mechanism.sample(ids, _rng())
        seeded = DxPrivatizer(space, mechanism, seed=SEED)
        yield f"{name}/text", seeded({"text": texts(space)}, list(range(9)))
        yield f"{name}/guarantee", rounded(str(seeded.guarantee)).split("\n")
        yield f"{name}/numbers", _figures(seeded.guarantee.to_dict())


def _rng() -> np.random.Generator:
    return np.random.Generator(np.random.Philox(5))


def options() -> Iterator[Case]:
    """Yield what the arguments of a privatizer change."""
    space = euclidean_space()
    cells, w = texts(space), some_words(space)
    indexed, listed = space.build_index("ivf"), space.build_neighbours(16, progress=False)
    batch = {"text": cells, "title": cells[::-1], "stars": list(range(len(cells)))}
    for law in laws(space):
        if law.label not in ("calibrated", "tem", "laplace"):
            continue
        changes: dict[str, dict[str, Any]] = {
            "stopwords-english": {"stopwords": "english"},
            "stopwords-set": {"stopwords": {w[0], w[5]}},
            "oov-drop": {"oov": "drop"},
            "oov-keep": {"oov": "keep"},
            "case-preserve": {"case": "preserve"},
            "output-column": {"output_column": "private"},
            "columns": {"text_column": ["text", "title"]},
            "other-column": {"text_column": "title"},
            "columns-output": {"text_column": ["title", "text"], "output_column": ["a", "b"]},
            "everything": {"stopwords": "english", "oov": "drop", "case": "preserve"},
        }
        for change, arguments in changes.items():
            made = privatizer(space, law, seed=SEED, **arguments)
            yield f"{law.label}/{change}", made(batch, list(range(len(cells))))
        memo = privatizer(space, law, memoize="row", key=KEY, oov="drop", case="preserve")
        yield f"{law.label}/memoize-drop-preserve", memo(batch)
        if law.name == "laplace":
            made = privatizer(indexed, law, seed=SEED, index="ivf")
            yield f"{law.label}/index-ivf", made(batch, list(range(len(cells))))
        else:
            made = privatizer(listed, law, seed=SEED)
            yield f"{law.label}/neighbour-lists", made(batch, list(range(len(cells))))


# Tokens and slots

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]


def tokens_of(name: str, space: EmbeddingSpace) -> Iterator[Case]:
    """Yield the releases of token ids."""
    names = [*SPECIAL, "##outside", *reversed(space.words)]
    vocabulary = {token: row for row, token in enumerate(names)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.add_special_tokens(SPECIAL)
    ids = [[2, 7, 30, 7, 4, 3, 0], [2, 1, 99, 3], None, [], [2, 7, 30, 7, 4, 3, 0]]
    for law in laws(space):
        made = TokenPrivatizer(space, tokenizer, law.name, law.epsilon, seed=SEED, **law.options)
        for entry, value in entry_points(made, "input_ids", ids, {"labels": [0, 1, 0, 1, 0]}):
            if entry not in ("single", "pandas"):
                yield f"{name}/{law.label}/{entry}", value
        yield f"{name}/{law.label}/single", made({"input_ids": ids[0]}, 4)
        yield f"{name}/{law.label}/ids", made.privatize_ids(ids)
        yield f"{name}/{law.label}/array", made.privatize_ids(np.array([ids[0], ids[0]])).tolist()


def selectors(space: EmbeddingSpace) -> dict[str, Selector]:
    """Return selectors of words, by name."""
    content = ContentWordSelector()
    w = some_words(space)
    public = [f"play {w[0]} on {w[1]}", f"play {w[2]} on {w[3]}", f"book {w[4]} for two"] * 20
    alphabet = ["play", "on", "book", "for", "two", *w]
    grams = LowTransitionSelector.fit(public, epsilon=None, alphabet=alphabet, threshold=0.4)
    return {
        "content": content,
        "inverted": ~content,
        "share": ShareSelector(content, minimum=0.2, maximum=0.5),
        "low-transition": grams,
        "coverage": grams.replace(mode="coverage"),
        "both": content & grams,
    }


def slots_of(name: str, space: EmbeddingSpace) -> Iterator[Case]:
    """Yield the releases of slots, with masks and spans."""
    w = some_words(space)
    cells = [*texts(space), f"play {w[0]} on {w[6]}", f"Book {w[7].title()} for two!"]
    lists = token_lists(space)
    tags = [["O", "B-x", "O", "I-x"], ["B-y", "O", "B-x"], [], None, ["O", "B-x", "O"]]
    shown = {"mask_column": "mask", "spans_column": "spans"}
    by_name = selectors(space)
    for law in laws(space):
        for kind, selector in by_name.items():
            made = SlotPrivatizer(
                space, law.name, law.epsilon, selector=selector, seed=SEED, **shown, **law.options
            )
            where = f"{name}/{law.label}/{kind}"
            yield where, made({"text": cells}, list(range(len(cells))))
            if kind == "content":
                yield f"{where}/arrow", made(pa.table({"text": cells})).to_pydict()
                yield f"{where}/privatize", made.privatize(cells)
        for kind, labels in (("tags", None), ("tags-x", ["x"])):
            by_tag = TagColumnSelector("tags", labels)
            made = SlotPrivatizer(
                space, law.name, law.epsilon, selector=by_tag, seed=SEED, **shown, **law.options
            )
            value = made({"text": lists, "tags": tags}, list(range(len(lists))))
            yield f"{name}/{law.label}/{kind}", value


# Noise under one seed


def identities() -> Iterator[Case]:
    """Yield releases of one text under one seed that have to differ in their noise."""
    for space in (euclidean_space(), poincare_space()):
        for law in laws(space):
            for change, text in _identities_of(space, law):
                yield f"{space.metric}/{law.label}/{change}", text


def _identities_of(space: EmbeddingSpace, law: Law) -> Iterator[tuple[str, str]]:
    text, moved = " ".join(space.words[:60]), space.rescale(1.0009765625)

    def released(made: Any, column: str = "text", row: int = 0) -> str:
        return str(made({column: [text]}, [row])[column][0])

    made = privatizer(space, law, seed=SEED)
    yield "plain", released(made)
    yield "row", released(made, row=1)
    yield "seed", released(privatizer(space, law, seed=SEED + 1))
    other = privatizer(space, law, seed=SEED, text_column="other")
    yield "column", released(other, "other")
    nearly = law._replace(epsilon=law.epsilon * (1 + 2.0**-20))
    yield "epsilon", released(privatizer(space, nearly, seed=SEED))
    yield "oov", released(privatizer(space, law, seed=SEED, oov="drop"))
    kept = privatizer(space, law, seed=SEED, stopwords={"somethingelse"})
    yield "stopwords", released(kept)
    yield "space", released(privatizer(moved, law, seed=SEED))
    for unit in ("row", "user"):
        column = {"user_column": "who"} if unit == "user" else {}
        memo = privatizer(space, law, memoize=unit, key=KEY, **column)
        yield f"memoize-{unit}", memo({"text": [text], "who": ["ann"]})["text"][0]
    memo = privatizer(space, law, memoize="row", key=KEY[::-1])
    yield "memoize-key", memo({"text": [text]})["text"][0]


# Promises, names and files


def guarantees(folder: Path) -> Iterator[Case]:
    """Yield the printed guarantees as they read, and their numbers."""
    for name, space in spaces():
        for law in laws(space):
            guarantee = privatizer(space, law).guarantee
            yield f"{name}/{law.label}/text", rounded(str(guarantee)).split("\n")
            yield f"{name}/{law.label}/numbers", _figures(guarantee.to_dict())
    space = euclidean_space()
    law = laws(space)[2]
    variants: dict[str, dict[str, Any]] = {
        "seed": {"seed": SEED},
        "memoize-row": {"memoize": "row", "key": KEY},
        "memoize-user": {"memoize": "user", "key": KEY, "user_column": "author"},
        "stopwords": {"stopwords": "english"},
        "drop": {"oov": "drop"},
        "keep": {"oov": "keep", "case": "preserve"},
    }
    for change, arguments in variants.items():
        yield f"variants/{change}", str(privatizer(space, law, **arguments).guarantee).split("\n")
    for kind, selector in {**selectors(space), "tags": TagColumnSelector("tags")}.items():
        made = SlotPrivatizer(space, law.name, law.epsilon, selector=selector)
        yield f"slots/{kind}", str(made.guarantee).split("\n")
    vocabulary = {token: row for row, token in enumerate([*SPECIAL, *space.words])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    made_of_tokens = TokenPrivatizer(space, tokenizer, law.name, law.epsilon)
    yield "tokens", str(made_of_tokens.guarantee).split("\n")
    indexed = space.build_index("ivf")
    yield "index", str(DxPrivatizer(indexed, "laplace", 6.0, index="ivf").guarantee).split("\n")
    space.save_pretrained(folder / "space")
    stored = EmbeddingSpace.from_pretrained(folder / "space")
    yield "stored", str(privatizer(stored, law).guarantee).split("\n")


def _figures(values: dict[str, Any]) -> dict[str, Any]:
    """Return the numbers among values, rounded."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, dict):
            found[str(name)] = _figures(value)
        elif isinstance(value, (int, float)):
            found[str(name)] = f"{value:.6g}"
    return found


def measurements() -> Iterator[Case]:
    """Yield figures of calibration and audit, rounded."""
    for name, space in (("euclidean", euclidean_space()), ("poincare", poincare_space())):
        words = some_words(space)
        for law in laws(space):
            mechanism = MECHANISMS[law.name](space, law.epsilon, **law.options)
            found = privacy_statistics(mechanism, words, 200, rng=_rng(), progress=False)
            yield (
                f"statistics/{name}/{law.label}",
                [
                    [f"{value:.6g}" for value in column]
                    for column in (found.kept, found.support, found.distinct, found.support_low)
                ],
            )
            if law.label not in ("tem", "laplace"):
                continue
            targets = {"max_nw": 0.9, "words": words, "runs": 300}
            suggested = suggest_epsilon(space, law.name, rng=_rng(), progress=False, **targets)
            yield f"suggestion/{name}/{law.label}", str(suggested).split("\n")
        for label in ("tem", "calibrated"):
            check = verify_guarantee(MECHANISMS[label](space, 3.0))
            yield f"audit/{name}/{label}", _figures(check.to_dict())


def names() -> Iterator[Case]:
    """Yield the public names, and how they are called."""
    for module in PUBLIC:
        room = importlib.import_module(module)
        for name in sorted(room.__all__):
            value = getattr(room, name)
            yield f"{module}/{name}", _call(value) if callable(value) else type(value).__name__


def _call(value: Callable[..., Any]) -> str:
    """Return the names of the parameters; one that may be left out has a sign of equality."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except ValueError:
        return "(...)"
    marks = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    shown = [
        f"{marks.get(p.kind, '')}{p.name}{'' if p.default is p.empty else '='}" for p in parameters
    ]
    return f"({', '.join(shown)})"
