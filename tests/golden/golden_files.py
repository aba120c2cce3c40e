"""Golden cases of files: what the program writes, and the bytes of saved artifacts."""

import contextlib
import csv
import gzip
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq

from golden_cases import SEED, Case, rounded, selectors
from golden_spaces import euclidean_space, laws, poincare_space, some_words, texts
from hf_dxprivacy import DxPrivatizer, EmbeddingSpace, SlotPrivatizer
from hf_dxprivacy.cli.main import main
from hf_dxprivacy.slots import LowTransitionSelector


def _rows(space: EmbeddingSpace) -> list[dict[str, Any]]:
    """Return rows whose other columns are easily spoilt."""
    cells = [cell or "" for cell in texts(space)]
    others = ["007", "1.10", "", "1e5", "NA", 'a "b"', "x, y", "été", "-0"]
    return [
        {"id": other, "text": cell, "title": cell.upper(), "n": row}
        for row, (cell, other) in enumerate(zip(cells, others, strict=True))
    ]


def _delimited(rows: list[dict[str, Any]], delimiter: str) -> bytes:
    file = io.StringIO(newline="")
    writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return file.getvalue().encode()


def _inputs(folder: Path, rows: list[dict[str, Any]]) -> dict[str, Path]:
    """Write rows in every format."""
    lines = [cell["text"].replace("\n", " ") for cell in rows]
    jsonl = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    contents = {
        "in.csv": _delimited(rows, ","),
        "in.tsv": _delimited(rows, "\t"),
        "in.jsonl": jsonl.encode(),
        "in.txt": ("\n".join(lines) + "\n").encode(),
        "in.csv.gz": gzip.compress(_delimited(rows, ",")),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(content)
    pq.write_table(pa.Table.from_pylist(rows), folder / "in.parquet")
    return {path.name: path for path in sorted(folder.glob("in.*"))}


def _cells(path: Path) -> Any:
    """Return what is in a file of rows, whatever the way in which it is written."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        table = pq.read_table(path)
        return [str(table.schema.remove_metadata()), table.to_pylist()]
    data = path.read_bytes()
    text = (gzip.decompress(data) if path.name.endswith(".gz") else data).decode()
    if name.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines()]
    if name.endswith(".txt"):
        return text.split("\n")
    return list(csv.reader(io.StringIO(text), delimiter="," if name.endswith("csv") else "\t"))


def program(folder: Path) -> Iterator[Case]:
    """Yield the outputs of `hf-dxprivacy privatize`, as cells and as bytes."""
    for name, space in (("euclidean", euclidean_space()), ("poincare", poincare_space())):
        space.save_pretrained(folder / name)
        place = folder / f"{name}-data"
        place.mkdir()
        inputs = _inputs(place, _rows(space))
        for law in laws(space):
            asked = ["--space", str(folder / name), "--mechanism", law.name]
            asked += ["--epsilon", str(law.epsilon), "--seed", str(SEED)]
            for option, value in law.options.items():
                asked += [f"--{option.replace('_', '-')}", str(value)]
            for source in inputs.values():
                # Every law through one format, one law through all of them.
                if law.label == "calibrated" or source.name == "in.csv":
                    target = source.with_name(f"{law.label}-out{source.name[2:]}")
                    yield from _run(f"{name}/{law.label}/{source.name}", source, target, asked)
        yield from _variants(name, place, ["--space", str(folder / name)])


def _variants(name: str, place: Path, space: list[str]) -> Iterator[Case]:
    asked = [*space, "--mechanism", "tem", "--epsilon", "3", "--seed", str(SEED)]
    stopwords = place / "stop.txt"
    stopwords.write_text("the\nwas\n")
    variants = {
        "columns": ["--text-column", "text", "--text-column", "title"],
        "output-column": ["--text-column", "title", "--output-column", "private"],
        "stopwords": ["--stopwords", "english", "--case", "preserve"],
        "stopwords-file": ["--stopwords", str(stopwords), "--oov", "drop"],
        "batches": ["--batch-size", "2"],
    }
    for variant, more in variants.items():
        for ending in ("csv", "jsonl"):
            source, target = place / f"in.{ending}", place / f"{variant}.{ending}"
            yield from _run(f"{name}/{variant}/{ending}", source, target, [*asked, *more])
    for one, other in (("csv", "jsonl"), ("tsv", "csv"), ("csv", "parquet"), ("parquet", "jsonl")):
        source, target = place / f"in.{one}", place / f"from-{one}.{other}"
        yield from _run(f"{name}/{one}-to-{other}", source, target, asked)


def _run(key: str, source: Path, target: Path, asked: list[str]) -> Iterator[Case]:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = main(["privatize", str(source), "--output", str(target), *asked])
    if code:
        yield f"cells/{key}", f"exit {code}: {said.getvalue()}"
        return
    yield f"cells/{key}", _cells(target)
    if target.suffix not in (".gz", ".parquet"):
        yield f"bytes/{key}", target.read_bytes().decode()


def artifacts(folder: Path) -> Iterator[Case]:
    """Yield the files of saved artifacts, each with its numbers rounded where it is text."""
    # Nothing that another section certified may get into these files.
    with mock.patch.dict(os.environ, HF_DXPRIVACY_CACHE=str(folder / "cache")):
        _save(folder, euclidean_space.__wrapped__(), poincare_space.__wrapped__())
    for name in ("space", "ball", "selector", "privatizer", "slots"):
        for path in sorted((folder / name).rglob("*")):
            if path.is_file() and path.suffix != ".png":
                yield f"{name}/{path.relative_to(folder / name)}", _content(path, folder)


def _save(folder: Path, space: EmbeddingSpace, ball: EmbeddingSpace) -> None:
    space = space.build_index("ivf").build_neighbours(16, progress=False)
    # A mechanism that was used leaves its certificate in the files.
    DxPrivatizer(space, "calibrated", 3.0)
    space.save_pretrained(folder / "space")
    ball.save_pretrained(folder / "ball")
    selectors(space)["low-transition"].save_pretrained(folder / "selector")
    stored = EmbeddingSpace.from_pretrained(folder / "space")
    arguments = {"stopwords": "english", "output_column": "private"}
    DxPrivatizer(stored, "calibrated", 3.0, **arguments).save_pretrained(folder / "privatizer")
    selector = LowTransitionSelector.from_pretrained(folder / "selector")
    slots = SlotPrivatizer(stored, "laplace", 6.0, selector=selector, resample=0.5)
    slots.save_pretrained(folder / "slots")


def _content(path: Path, folder: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix not in (".json", ".md"):
        return data
    return rounded(without_folder(data.decode(), folder)).encode()


def without_folder(text: str, folder: Path) -> str:
    """Return a text without the name of a folder, and without a digest that depends on it."""
    if str(folder) in text:
        text = re.sub(r'("config_sha256": )"[0-9a-f]{64}"', r'\1"DIGEST"', text)
    return text.replace(str(folder), "FOLDER")


def reloaded(folder: Path) -> Iterator[Case]:
    """Yield what artifacts release after a round trip through their files."""
    space = euclidean_space()
    space.save_pretrained(folder / "space")
    stored = EmbeddingSpace.from_pretrained(folder / "space")
    for law in laws(space):
        made = DxPrivatizer(stored, law.name, law.epsilon, **law.options)
        made.save_pretrained(folder / law.label)
        again = DxPrivatizer.from_pretrained(folder / law.label, seed=SEED)
        yield law.label, again({"text": texts(space)})
    w = some_words(space)
    for kind in ("content", "low-transition", "both"):
        slots = SlotPrivatizer(stored, "tem", 3.0, selector=selectors(space)[kind])
        slots.save_pretrained(folder / f"slots-{kind}")
        loaded = SlotPrivatizer.from_pretrained(folder / f"slots-{kind}", seed=SEED)
        yield f"slots-{kind}", loaded({"text": [*texts(space), f"play {w[0]} on {w[6]}"]})
