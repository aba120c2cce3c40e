"""Time that is linear in the length of any text, in every function that takes one."""

import contextlib
import importlib
import inspect
import io
import json
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import hf_dxprivacy.sentences
import hf_dxprivacy.text
from hf_dxprivacy import DxPrivatizer, SentencePrivatizer
from hf_dxprivacy.errors import DxPrivacyError, describe_columns
from hf_dxprivacy.evaluation.attribution import _grams
from hf_dxprivacy.files.source import Columns, Input
from hf_dxprivacy.files.text_rows import Lines, read_delimited, read_jsonl, read_txt
from hf_dxprivacy.hub.cards import code, plain, slug
from hf_dxprivacy.privatizers.nested import TextPath
from hf_dxprivacy.sentences import WordEncoder, cleaning
from hf_dxprivacy.sentences.projection import encode_blocks
from hf_dxprivacy.slots.ngram_tree import fold
from hf_dxprivacy.text import segmentation, segmenters, shapes, slurs, stopwords
from hf_dxprivacy.text.refill import masked, refill
from hf_dxprivacy.text.selector import ContentWordSelector
from small_pools import small_pool, small_words

# Runs of one character of each class, and of what some careless rule tries in many ways.
UNITS = (
    *(
        "a",
        "A",
        "Aa ",
        "1",
        " ",
        "\n",
        "\t",
        "\r\n",
        "\x00",
        "\u2028",
        "\u200b",
        "\ufffd",
        "\ud83d",
    ),
    *('"', "'", "’", "`", "``", "“", "«", "「", "' ", '"a" ', '“"a" ', "„a“ ", "«a.» ", '"a. B" '),
    *(
        ".",
        "...",
        "!",
        "?! ",
        "。",
        "中",
        "中。",
        "नि। ",
        "ไ",
        "學。「",
        "a.",
        "a. ",
        "A. ",
        "Mr. ",
    ),
    *("1.", "1. ", "1,", "1,111", "1:", "1-", "1/", "1) ", "1st ", "0.", "19", "8 of 10 ", "5% "),
    *("-", "a-", "a'", "a’s ", "_", "a_", "a@", "@", "a@b.c ", "www.", "http://a ", "@\n", "%+-"),
    *("(", ")", "(a. ", "[", "[]", "{", "<", "<a>", "&", "|", "\\", "*", "#", "\\u", ",", '",'),
    *("👍🏽", "👩\u200d", "🇩🇪", "é", "e\u0301", "\u0301", "\u0315\u0300", "\u0f73", "ß", "İ", "Σ'"),
    *("fuck", "fuck'", "Dr. Mary Jones ", "mr ", "a@b.", "[].", "a[]", "\n\n", "a\n\nb\n", "-_"),
)

WORDS = small_words()
POOL = small_pool(WORDS)
READER, JIEBA = segmentation.RowReader(), segmentation.RowReader("jieba")


def row(text: str) -> segmentation.TextRow:
    return READER.read_text(text)


def tokens(text: str) -> segmentation.TokenRow:
    found = READER.read([text[start : start + 10] for start in range(0, len(text), 10)])
    assert isinstance(found, segmentation.TokenRow)
    return found


def read_lines(text: str, read: Any, kind: str) -> list[Any]:
    lines = Lines(io.BufferedReader(io.BytesIO(text.encode("utf-8", "replace"))), "lines")
    found = read(lines, Input("lines", kind), Columns(("text",), ("text",)))
    return [*found[1]]


# What is done with a text, by the function of `text` or `sentences` that does it.
FUNCTIONS: dict[str, Callable[[str], Any]] = {
    "segmentation.RowReader.read": tokens,
    "segmentation.RowReader.read_text": row,
    "segmentation.RowReader.words": lambda t: READER.words(READER.normalize(t)),
    "segmentation.RowReader.segment": lambda t: JIEBA.segment(JIEBA.normalize(t)),
    "segmentation.RowReader.normalize": READER.normalize,
    "segmentation.TextRow.detokenize": lambda t: row(t).detokenize(row(t).words),
    "segmentation.TextRow.offsets": lambda t: row(t).offsets(row(t).words),
    "segmentation.TokenRow.detokenize": lambda t: tokens(t).detokenize(tokens(t).words),
    "segmentation.TokenRow.offsets": lambda t: tokens(t).offsets(tokens(t).words),
    "segmentation.plain_apostrophes": segmentation.plain_apostrophes,
    "segmentation.without_accents": segmentation.without_accents,
    "segmentation.without_possessive": segmentation.without_possessive,
    "segmentation.case_pattern": segmentation.case_pattern,
    "segmentation.apply_case": lambda t: [
        segmentation.apply_case(t, c) for c in ("title", "upper")
    ],
    "shapes.shape_of": lambda t: [
        shapes.shape_of(t, t, False),
        shapes.shape_of(t + "\n", "", True),
    ],
    "shapes.is_rendered": lambda t: shapes.is_rendered(t, shapes.SHAPES, any_case=True),
    "shapes.chances": lambda t: shapes.chances(t, shapes.SHAPES),
    "shapes.seems_name": lambda t: shapes.seems_name(t, t, False),
    "selector.ContentWordSelector.masks": lambda t: ContentWordSelector().masks([[t]]),
    "slurs.is_harsh": slurs.is_harsh,
    "slurs.is_slur": lambda t: [slurs.is_slur(t), slurs.is_slur(t + ".")],
    "stopwords.stop_words": lambda t: stopwords.stop_words([t]),
    "refill.refill": lambda t: refill(t, np.random.default_rng(0)),
    "refill.masked": masked,
    "cleaning.split_sentences": cleaning.split_sentences,
    "cleaning.plain": cleaning.plain,
    "cleaning.clean_sentences": lambda t: cleaning.clean_sentences([t], (0, len(t))),
    "encoders.WordEncoder.fitted": lambda t: WordEncoder(WORDS).fitted([t]),
    "encoders.WordEncoder.known_shares": lambda t: WordEncoder(WORDS).known_shares([t]),
    "encoders.WordEncoder.encode": lambda t: WordEncoder(WORDS).encode([t]),
    "pool.SentencePool.points": lambda t: POOL.points([t]),
    "pool.SentencePool.look_up": lambda t: POOL.look_up([t]),
    "pool.SentencePool.nearest": lambda t: POOL.nearest([t]),
    "pool.SentencePool.coverage": lambda t: POOL.coverage([t]),
    "projection.encode_blocks": lambda t: encode_blocks(WordEncoder(WORDS), [t]),
}
# Of no text: words, names, labels, shapes, files; of makers of pools, which clean and encode, and
# of the encoders of other libraries.
OTHERS = {
    *("segmenters.identity", "segmenters.splitter", "segmentation.is_missing", "shapes.render"),
    *("cleaning.lines_of", "cleaning.cells_of", "labels.as_label", "labels.labelled_texts"),
    *("selector.Selector.masks", "selector.ShareSelector.masks", "pool.SentencePool.without"),
    *("encoded_sentences.joined", "encoded_sentences.EncodedSentences.encode"),
    *("labels.rows_of_label", "labels.label_arrays", "labels.stored_labels", "pool.is_pool"),
    *(f"pool.SentencePool.{name}" for name in ("from_sentences", "union", "with_label", "read")),
    *(f"pool.SentencePool.{name}" for name in ("from_dataset", "from_file", "from_pretrained")),
    *(f"encoders.SentenceEncoder.{name}" for name in ("encode", "encode_public", "known_shares")),
    *("encoders.SentenceEncoder.fitted", "encoders.TransformersEncoder.encode_public"),
    *(f"encoders.{name}Encoder.restored" for name in ("Word", "Transformers", "Static")),
    *(f"encoders.{name}Encoder.encode" for name in ("Transformers", "Static")),
}
CALLS = TextPath("messages[].content")
# The same in the other packages, where no rule tells functions of texts from others.
BEYOND: dict[str, Callable[[str], Any]] = {
    "words": DxPrivatizer(WORDS, "krr", epsilon=1.0).privatize,
    "sentences": SentencePrivatizer(POOL, "krr", epsilon=1.0, unit="sentence").privatize,
    "path": TextPath,
    "nested": lambda t: CALLS.read(row, [{"role": t, "content": [{"text": t}, {"image": t}]}]),
    "alphabet": lambda t: fold([t]),
    "markdown": lambda t: [plain(t), code(t), slug(t)],
    "txt": lambda t: read_lines(t, read_txt, "txt"),
    "jsonl": lambda t: read_lines(json.dumps({"text": t}), read_jsonl, "jsonl"),
    "raw jsonl": lambda t: read_lines(t, read_jsonl, "jsonl"),
    "csv": lambda t: read_lines("text\n" + t, read_delimited, "csv"),
    "header": lambda t: read_lines(t, read_delimited, "csv"),
    "grams": lambda t: list(_grams(t)),
    "columns": lambda t: describe_columns([t, "text"], "texts"),
}


def of_texts(package: ModuleType) -> Iterator[str]:
    """Yield the public functions and methods of a package that take a string or any object."""
    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(found.name)
        own = {name: thing for name, thing in vars(module).items() if not name.startswith("_")}
        for name, thing in own.items():
            if getattr(thing, "__module__", None) != module.__name__:
                continue
            of_class = vars(thing).items() if inspect.isclass(thing) else ()
            methods = {f"{name}.{key}": each for key, each in of_class if not key.startswith("_")}
            for path, function in (methods or {name: thing}).items():
                function = inspect.unwrap(getattr(function, "__func__", function))
                if inspect.isfunction(function):
                    kinds = [
                        str(p.annotation) for p in inspect.signature(function).parameters.values()
                    ]
                    if any(re.search(r"\bstr\b|object", kind) for kind in kinds):
                        yield f"{found.name.rpartition('.')[2]}.{path}"


def test_every_function_of_a_text_is_listed() -> None:
    found = {*of_texts(hf_dxprivacy.text), *of_texts(hf_dxprivacy.sentences)}
    assert found == FUNCTIONS.keys() | OTHERS
    assert not FUNCTIONS.keys() & OTHERS


def seconds(function: Callable[[str], Any], text: str) -> float:
    start = time.process_time()
    with contextlib.suppress(DxPrivacyError):
        function(text)
    return time.process_time() - start


@pytest.mark.parametrize("name", [*FUNCTIONS, *BEYOND])
def test_time_is_linear_in_the_length_of_any_text(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For ten times the length n² takes a hundred times the time; caches make n take up to 25.

    Ten tries: a busy machine spoils some.
    """
    # What is cut is linear beyond the cut.
    monkeypatch.setattr(cleaning, "LONGEST", 300, raising=False)
    monkeypatch.setattr(segmenters, "LONGEST", 300)
    function = {**FUNCTIONS, **BEYOND}[name]
    slow = dict.fromkeys(UNITS, 0.0)
    for _ in range(10):
        for unit in slow:
            short, long = ((unit * (n // len(unit) + 1))[:n] for n in (3_000, 30_000))
            slow[unit] = seconds(function, long) / max(seconds(function, short), 3e-4)
        slow = {unit: ratio for unit, ratio in slow.items() if ratio > 30}
        if not slow:
            break
    assert not slow
