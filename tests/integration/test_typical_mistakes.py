"""Typical mistakes: a message names what was given, what is allowed, and what to do instead.

Each case has these three as patterns. Near misses of names are in `test_asked_rightly.py`, damaged
files in `test_cli_errors.py`.
"""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import Dataset, DatasetDict

from hf_dxprivacy import (
    DxPrivatizer,
    EmbeddingSpace,
    PrivacyBudget,
    SentencePool,
    SentencePrivatizer,
    SlotPrivatizer,
    publishable,
)
from hf_dxprivacy.calibration import privacy_statistics, suggest_epsilon
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.errors import DxPrivacyError

WORDS = ["cold", "warm", "soup", "bread", "rude", "kind", "waiter", "cook"]
VECTORS = np.random.default_rng(3).normal(size=(8, 2)).astype(np.float32)
ROWS = Dataset.from_dict({"text": ["cold soup", "rude waiter"], "stars": [1, 2]})
TURNS = [{"role": "user", "content": "cold soup"}, {"role": "assistant", "content": "kind cook"}]
CHATS = Dataset.from_dict({"messages": [TURNS] * 2})

Call = Callable[[EmbeddingSpace], Any]


@pytest.fixture(scope="module")
def space() -> EmbeddingSpace:
    return EmbeddingSpace.from_vectors(WORDS, VECTORS).build_hierarchy()


def made(space: Any, **changes: Any) -> DxPrivatizer:
    return DxPrivatizer(space, **{"mechanism": "hierarchical", "epsilon": 1.5, **changes})


def mapped(space: Any, rows: Any = ROWS, **changes: Any) -> Any:
    return rows.map(made(space, **changes), batched=True)


def pool() -> SentencePool:
    return SentencePool.from_pretrained("wordnet-sentences")


IN_PYTHON: dict[str, tuple[Call, str, str, str]] = {
    "ε of zero": (
        *(lambda s: made(s, epsilon=0), "got epsilon=0", "epsilon > 0 and finite"),
        "begin with 1.5",
    ),
    "ε below zero": (
        *(lambda s: made(s, epsilon=-1), "got epsilon=-1", "epsilon > 0"),
        "begin with 1.5",
    ),
    "ε that is none": (
        *(lambda s: made(s, epsilon=float("nan")), "epsilon=nan", "epsilon > 0 and finite"),
        "begin with 1.5",
    ),
    "ε without end": (
        *(lambda s: made(s, epsilon=float("inf")), "epsilon=inf", "epsilon > 0 and finite"),
        "begin with 1.5",
    ),
    "ε in quotes": (
        *(lambda s: made(s, epsilon="5"), r"epsilon='5' \(str\)", "to be a number"),
        "pass epsilon=5, without quotes",
    ),
    "ε that is true": (
        *(lambda s: made(s, epsilon=True), r"epsilon=True \(bool\)", "to be a number"),
        "pass a number",
    ),
    "several ε": (
        *(lambda s: made(s, epsilon=[1, 2]), r"epsilon=\[1, 2\]", "to be a number"),
        "pass a number",
    ),
    "no ε": (
        *(lambda s: made(s, epsilon=None), "epsilon is missing", "no default"),
        "pass epsilon=.* begin with 1.5",
    ),
    "no mechanism": (
        *(lambda s: made(s, mechanism=None), "mechanism is missing", "one of 'laplace', "),
        "'hierarchical' is recommended",
    ),
    "mechanism in capitals": (
        *(lambda s: made(s, mechanism="HIERARCHICAL"), "'HIERARCHICAL'", "one of 'laplace', "),
        "did you mean 'hierarchical'?",
    ),
    "space misspelt": (
        *(lambda s: made("englsh"), "got 'englsh'", r"built-in space \('english', 'wordnet-gloss'"),
        "did you mean 'english'?",
    ),
    "folder that is not there": (
        *(lambda s: made("./spaces"), "got './spaces'", "a local folder that holds a space"),
        "check the spelling or the path",
    ),
    "no space": (
        *(lambda s: made(None), "got a NoneType", "space to be an EmbeddingSpace"),
        "from_pretrained",
    ),
    "pool as a space": (
        *(lambda s: made(pool()), "got a pool", "a space of words"),
        "use SentencePrivatizer",
    ),
    "name of a pool as a space": (
        *(lambda s: made("wordnet-sentences"), "a pool of sentences", "no word of a text is found"),
        "pass the pool to SentencePrivatizer",
    ),
    "space as a pool": (
        *(lambda s: SentencePrivatizer(s, epsilon=5.0), "got an EmbeddingSpace", "SentencePool"),
        "by DxPrivatizer",
    ),
    "name of a space as a pool": (
        *(lambda s: SentencePrivatizer("english", epsilon=5.0), "^english", "a pool of sentences"),
        "pass it to DxPrivatizer",
    ),
    "column in other letters": (
        *(lambda s: mapped(s, ROWS.rename_column("text", "TEXT")), "'text' is not in the data"),
        *("the columns are '(TEXT|stars)', '(TEXT|stars)'", "did you mean 'TEXT'?.* text_column="),
    ),
    "column that is not there": (
        *(lambda s: mapped(s, text_column="review"), "column 'review' is not", "'text', 'stars'"),
        "name the one to use with text_column=",
    ),
    "the only column misspelt": (
        *(lambda s: mapped(s, CHATS, text_column="message[].content"), "'message'"),
        *("there is one column", "did you mean 'messages'?"),
    ),
    "column of numbers": (
        *(lambda s: mapped(s, text_column="stars"), "column 'stars', row 0 .* got an int"),
        *(r"a text \(str\), a list of tokens or None", "name a column of texts"),
    ),
    "column of token ids": (
        *(lambda s: mapped(s, Dataset.from_dict({"text": [[1, 2]]})), "holds an int"),
        *(r"a list of tokens \(str\)", "token ids are for TokenPrivatizer"),
    ),
    "chats without a path": (
        *(lambda s: mapped(s, CHATS, text_column="messages"), "holds a dict", "a list of tokens"),
        r"text_column='messages\[\].content'",
    ),
    "path with a dot for brackets": (
        *(lambda s: mapped(s, CHATS, text_column="messages.content"), "'messages.content'"),
        *("is not in the data", r"a path into lists of 'messages' as 'messages\[\].content'"),
    ),
    "key that is not there": (
        *(lambda s: mapped(s, CHATS, text_column="messages[].contents"), "no key 'contents'"),
        *("the keys are '(role|content)', '(role|content)'", "did you mean 'content'?"),
    ),
    "role of another dialect": (
        *(lambda s: mapped(s, CHATS, text_column="messages[].content", roles=("human",)),),
        *(r"roles=\('human',\)", "role 'user' in clear", "name the roles as the data do"),
    ),
    "roles without a path": (
        *(lambda s: made(s, roles="user"), r"roles=\('user',\)", "for texts within a column"),
        r"text_column='messages\[\].content'",
    ),
    "output that is there": (
        *(lambda s: mapped(s, output_column="stars"), "a column 'stars' already", "would be lost"),
        "name another one for the result",
    ),
    "two outputs for one text": (
        *(lambda s: made(s, output_column=["a", "b"]), r"got \('a', 'b'\)", "1 different columns"),
        "as many as text_column",
    ),
    "a stop word in place of a list": (
        *(lambda s: made(s, stopwords="the"), "got 'the'", "None, 'english' or words"),
        r"as in \['the'\]",
    ),
    "treatment misspelt": (
        *(lambda s: made(s, oov="centriod"), "oov='centriod'", "'centroid', 'drop', 'keep'"),
        "did you mean 'centroid'?",
    ),
    "letter case misspelt": (
        *(lambda s: made(s, case="Lower"), "case='Lower'", "'lower', 'preserve'"),
        "did you mean 'lower'?",
    ),
    "seed below zero": (
        *(lambda s: made(s, seed=-1), "seed=-1", "seed >= 0", "a seed is a whole number"),
    ),
    "λ above one": (
        *(lambda s: made(s, mechanism="mahalanobis", lam=2), "lam=2", "0.0 <= lam <= 1.0", ""),
    ),
    "γ of zero": (
        *(lambda s: made(s, mechanism="tem", gamma=0), "gamma=0", "gamma > 0 and finite", ""),
    ),
    "option of another mechanism": (
        *(lambda s: made(s, beta=0.1), "no option 'beta'", "its options are: none"),
        "'beta' is of 'tem', 'calibrated'; leave it out",
    ),
    "argument of map": (
        *(lambda s: made(s, num_proc=4), "num_proc=", "of Dataset.map", "pass it there"),
    ),
    "metric of another mechanism": (
        *(lambda s: made(s, mechanism="hyperbolic"), "got 'euclidean'", "the metric 'poincare'"),
        "'tem' and 'calibrated' work",
    ),
    "no tree": (
        *(lambda s: made(EmbeddingSpace.from_vectors(WORDS, VECTORS)), "this one has none"),
        *("needs a space with a tree", r"space.build_hierarchy\(\)"),
    ),
    "text in place of a batch": (
        *(lambda s: made(s)("cold soup"), "got a str", "an example or a batch"),
        r"use privatize\(\) for texts",
    ),
    "whole dataset in place of a batch": (
        *(lambda s: made(s)(ROWS), "got a whole Dataset", "an example or a batch"),
        r"dataset.map\(privatizer, batched=True\)",
    ),
    "all splits in place of a batch": (
        *(lambda s: made(s)(DatasetDict(train=ROWS)), "a whole DatasetDict", "a batch"),
        r"dataset.map\(privatizer, batched=True\)",
    ),
    "number in place of a text": (
        *(lambda s: made(s).privatize(5), "got an int", "a text or a sequence of texts"),  # type: ignore[call-overload]
        r"as in dataset.map\(privatizer\)",
    ),
    "dataset in place of texts": (
        *(lambda s: made(s).privatize(ROWS), "got a Dataset", "a text or a sequence of texts"),
        r"as in dataset.map\(privatizer\)",
    ),
    "a privatizer published": (
        *(lambda s: publishable(made(s)), "got a DxPrivatizer", "Dataset or a DatasetDict"),  # type: ignore[type-var]
        r"what dataset.map\(privatizer\) returned",
    ),
    "number as a budget": (
        *(lambda s: made(s, budget=6.0), "got a float", "to be a PrivacyBudget"),
        r"PrivacyBudget\(6.0\)",
    ),
    "budget below zero": (
        *(lambda s: PrivacyBudget(-1.0), "epsilon=-1", "epsilon > 0 and finite", ""),
    ),
    "budget of another unit": (
        *(lambda s: PrivacyBudget(1.0, unit="users"), "unit='users'", "'word', 'user'"),  # type: ignore[arg-type]
        "did you mean 'user'?",
    ),
    "bound of ids": (
        *(lambda s: made(s).guarantee.bound(3, 5), "got an int", r"a text \(str\)"),
        "texts with str",
    ),
    "slots without a selector": (
        *(lambda s: SlotPrivatizer(s, "tem", 2.0), "got none", "a selector of slots"),
        "NerSelector",
    ),
    "no target": (
        *(lambda s: suggest_epsilon(s, "tem"), "got neither", "max_nw, min_sw or both"),
        "max_nw=0.5",
    ),
    "statistics of a space": (
        *(lambda s: privacy_statistics(s), "an EmbeddingSpace", "expected a Mechanism"),  # type: ignore[arg-type]
        "privatizer.mechanism",
    ),
}


@pytest.mark.parametrize("mistake", IN_PYTHON)
def test_in_python(space: EmbeddingSpace, mistake: str) -> None:
    call, *patterns = IN_PYTHON[mistake]
    with pytest.raises(DxPrivacyError, match=patterns[0]) as raised:
        call(space)
    for pattern in patterns[1:]:
        assert re.search(pattern, str(raised.value)), str(raised.value)


@pytest.mark.parametrize(
    "works",
    [
        lambda s: ROWS.map(made(s)),
        lambda s: ROWS.map(lambda batch: made(s)(batch), batched=True, num_proc=2),
        lambda s: ROWS.map(made(s), batched=True, remove_columns=["stars"]),
        lambda s: DatasetDict(train=ROWS).map(made(s), batched=True)["train"],
        lambda s: mapped(s, CHATS, text_column="messages[].content", roles="user"),
        lambda s: mapped(s, Dataset.from_dict({"text": [None, None]})),
    ],
)
def test_what_looks_like_a_mistake_and_is_none(space: EmbeddingSpace, works: Call) -> None:
    assert len(works(space)) == 2


# On the command line: the arguments after "privatize r.csv --output out.csv", where it is these.
RELEASE = "privatize r.csv --output out.csv --space space "
BY_TREE = RELEASE + "--mechanism hierarchical --epsilon 1.5 "

ON_THE_COMMAND_LINE: dict[str, tuple[int, str, str, str]] = {
    "": (2, "expected a verb", "privatize, calibrate", "hf-dxprivacy --help"),
    "--hlep": (2, "no option '--hlep'", "expected a verb: privatize", "did you mean '--help'?"),
    "anonymize r.csv": (2, "no verb 'anonymize'", "", "did you mean 'privatize'?"),
    "r.csv": (2, "no verb 'r.csv'", "", "did you mean 'hf-dxprivacy privatize r.csv'?"),
    "privatize r.csv": (2, "--output", "are required", "privatize --help"),
    RELEASE: (
        2,
        "--epsilon is missing",
        "no default",
        "begin with --epsilon 1.5.* calibrate space",
    ),
    RELEASE + "--mechanism tem": (2, "--epsilon is missing", "", "begin with --epsilon 9"),
    RELEASE + "--epsilon 2": (2, "--mechanism is missing", "one of hier", "Begin with --mechanism"),
    RELEASE + "--mechanism tem --epsilon 0": (2, "got 0", "above zero", "begin with 1.5"),
    RELEASE + "--mechanism tem --epsilon 1,5": (2, "got 1,5", "above zero", "a point, as in 1.5"),
    RELEASE + "--mechanism tem --epsilon inf": (2, "got inf", "a finite number", "begin with"),
    BY_TREE + "--epsilon 1 2": (2, "arguments: 2", "", "repeat an option"),
    BY_TREE + "--beta 0.1": (2, "no option 'beta'", "its options are: none", "leave it out"),
    BY_TREE + "--num_proc 2": (2, "--num_proc", "unrecognized", "did you mean '--num-proc'?"),
    BY_TREE + "--text-column Text": (1, "'Text'", "'text', 'stars'", "did you mean 'text'?"),
    BY_TREE + "--text-column text stars": (2, "stars", "unrecognized", "repeat an option"),
    BY_TREE + "--space spce": (1, "'spce'", "a local folder", "did you mean 'space'?"),
    BY_TREE + "--output-column stars": (1, "'stars' already", "lost", "--output-column"),
    BY_TREE + "--stopwords the": (2, "the: No such file", "english, none or a file", "one word a"),
    BY_TREE + "--seed -1": (2, "got -1", ">= 0", ""),
    BY_TREE + "--unit text": (2, "--unit", "pools of sentences are for", "leave that out"),
    BY_TREE + "--delimiter tab": (2, "'tab'", "one character", ""),
    BY_TREE + "--split test": (2, "r.csv is a file", "--split and --subset are for the Hub", ""),
    BY_TREE.replace("out.csv", "old.csv"): (1, "old.csv exists already", "", "--overwrite"),
    BY_TREE.replace("out.csv", "r.csv"): (2, "r.csv is read", "never", "name another file"),
    BY_TREE.replace("out.csv", "o.xlsx"): (2, "'.xlsx'", "choose one of .csv", "or none for"),
    BY_TREE.replace("r.csv", "rr.csv"): (1, "rr.csv", "no such file", "did you mean 'r.csv'?"),
    BY_TREE.replace("r.csv", "space"): (1, "space", "a folder", "name a file in it"),
    BY_TREE.replace("r.csv", "r.xlsx"): (2, "'r.xlsx'", "csv, tsv, txt, jsonl", "--format"),
    BY_TREE.replace("r.csv", "semi.csv"): (1, "no column 'text'", "", "--delimiter ';'"),
    BY_TREE.replace("r.csv", "latin.csv"): (1, "latin.csv, line 2, byte 4", "UTF-8", "iconv"),
    BY_TREE.replace("r.csv", "cut.parquet"): (1, "cut.parquet", "truncated", "fetch or write"),
    "privatize list.jsonl --output o.jsonl --space space --mechanism krr --epsilon 1": (
        *(1, "list.jsonl, line 1", "one JSON object on every line", "a file that holds one list"),
    ),
    "privatize r.txt --output o.txt --text-column review --mechanism krr --epsilon 1": (
        *(2, "'review'", "a txt file has one column, 'text'", "leave --text-column"),
    ),
    "calibrate space --mechanism tem --epsilon 1 --max-nw 2": (2, "got 2", "between 0 and 1", ""),
    "calibrate space --mechanism tem --epsilon 1 --output t.xlsx": (
        *(2, "t.xlsx", "ends in .csv, .json, .parquet", "--output"),
    ),
    "audit guarantee --space space --mechanism krr": (2, "--epsilon is missing", "", "calibrate"),
    "audit attribution r.csv r.csv --author-column star": (
        *(1, "no column 'star'", "'text', 'stars'", "did you mean 'stars'?"),
    ),
    "compare r.csv --output t.doc": (2, "t.doc", "ends in .md, .json", "--output"),
    "convert glov.txt --output g": (1, "glov.txt", "No such file", "did you mean 'glove.txt'?"),
    "push spac me/x": (2, "spac", "no file or folder", "did you mean 'space'?"),
    "demo --port 99999": (2, "got 99999", "a port from 1 to 65535", ""),
}


@pytest.fixture
def folder(space: EmbeddingSpace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    space.save_pretrained(tmp_path / "space")
    files = {
        "r.csv": "text,stars\ncold soup,1\n",
        "semi.csv": "text;stars\ncold soup;1\n",
        "old.csv": "text\n",
        "r.txt": "cold soup\n",
        "glove.txt": "cold 1 2\nsoup 3 4\n",
        "list.jsonl": json.dumps([{"text": "cold soup"}]),
        "r.xlsx": "",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "latin.csv").write_bytes("text\ncafé\n".encode("latin-1"))
    pq.write_table(pa.table({"text": ["cold soup"] * 50}), tmp_path / "r.parquet")
    (tmp_path / "cut.parquet").write_bytes((tmp_path / "r.parquet").read_bytes()[:200])
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", ON_THE_COMMAND_LINE)
def test_on_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    code, *patterns = ON_THE_COMMAND_LINE[command]
    before = sorted(path.name for path in folder.iterdir())
    assert main(shlex.split(command)) == code
    said = capsys.readouterr().err
    for pattern in patterns:
        assert re.search(re.escape(pattern) if "*" not in pattern else pattern, said), said
    assert "Traceback" not in said
    assert "unexpected" not in said
    assert sorted(path.name for path in folder.iterdir()) == before


def test_there_are_more_than_forty() -> None:
    assert len(IN_PYTHON) >= 40
    assert len(ON_THE_COMMAND_LINE) >= 40
