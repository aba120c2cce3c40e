"""Reading WebIsADB: rows per second, peak memory, and what a kill in the middle costs.

    python benchmarks/webisadb.py
    python benchmarks/webisadb.py --millions 100 --forms csv.gz --folder /somewhere/large

The files are generated in the layout of the published dump, a million rows each, with words drawn
by Zipf's law and damage at known rates, which the counts of the reader are checked against. Every
reading is a process of its own; peak memory is its largest resident set, and CPU seconds are those
of all threads, which say more than the time where other work goes on.
"""

import gzip
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import common

FILE_ROWS = 1_000_000
BLOCK_ROWS = 250_000
WORDS = 400_000
HEADER = b"_id,instance,class,frequency,pidspread,pldspread,modifications\n"

# One row in so many is damaged in this way; the periods are prime, so that hardly one is twice.
DAMAGE = {
    "nul_bytes": 10_007,
    "incomplete": 20_011,
    "bad_frequency": 30_011,
    "broken_modifications": 40_009,
    "undecodable": 50_021,
}
# One row in so many has a field of 200,000 characters.
HUGE = 500_009
# The share of instances with two words, which are never in the vocabulary.
PHRASES = 0.3

READ = """
import dataclasses, hashlib, json, os, resource, sys, time
from pathlib import Path
from hf_dxprivacy.training import read_webisadb
words, work, *paths = sys.argv[1:]
vocabulary = Path(words).read_text().split()
started, before = time.perf_counter(), os.times()
relations = read_webisadb(
    paths, vocabulary=vocabulary, offensive=None, work=work or None, progress=False
)
wall, after = time.perf_counter() - started, os.times()
cpu = after.user + after.system - before.user - before.system
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
digest = hashlib.sha256("\\n".join(relations.nodes).encode() + relations.pairs.tobytes())
summary = dataclasses.asdict(relations.summary)
figures = {"wall": wall, "cpu": cpu, "peak": peak, "digest": digest.hexdigest()}
print(json.dumps(summary | figures))
"""


def make_words() -> pl.Series:
    """Return distinct words of letters, short ones first, as frequent words are."""
    letters = np.array(list("etaoinshrdlcumwfgypbvkjxqz"))
    words = []
    for number in range(1, WORDS + 1):
        word = ""
        while number:
            number, letter = divmod(number - 1, len(letters))
            word = letters[letter] + word
        words.append(word)
    return pl.Series(words)


def is_hit(name: str) -> pl.Expr:
    """Return whether a row is damaged in this way."""
    return pl.col("number") % DAMAGE[name] == 0


def fill(template: str, *columns: str | pl.Expr) -> pl.Expr:
    """Return texts with columns in the place of percent signs."""
    first, *others = map(pl.lit, template.split("%"))
    pairs = zip(columns, others, strict=True)
    return pl.concat_str([first, *(piece for pair in pairs for piece in pair)])


def modifications() -> pl.Expr:
    """Return a field like those of the dump: a JSON list of one modification, in quotes."""
    site = pl.when(pl.col("number") % HUGE == 0).then(pl.lit("x" * 200_000)).otherwise("site")
    # This letter becomes a byte that is not UTF-8.
    site = pl.when(is_hit("undecodable")).then(pl.lit("ÿ")).otherwise(site)
    field = fill(
        '"[{""_id"":{""$numberLong"":""%""},""ipremod"":"""",""ipostmod"":"""",""cpremod"":""%"",'
        '""cpostmod"":"""",""frequency"":%,""pidspread"":1,""pldspread"":1,""pids"":""p8b;"",'
        '""plds"":""%.com;"",""provids"":""%;""}]"',
        *("provenance", "modifier", "frequency"),
        site,
        "provenance",
    )
    return pl.when(is_hit("broken_modifications")).then(field.str.slice(0, 60)).otherwise(field)


def make_rows(words: pl.Series, first: int, count: int) -> bytes:
    """Return rows of the dump, always the same ones."""
    rng = np.random.default_rng(first)

    def draw() -> pl.Series:
        return words.gather((WORDS ** rng.random(count)).astype(np.int64) - 1)

    frame = pl.DataFrame(
        {
            "number": np.arange(first, first + count),
            "instance": draw(),
            "second": draw(),
            "class": draw(),
            "modifier": draw(),
            "site": draw(),
            "is_phrase": rng.random(count) < PHRASES,
            "frequency": np.minimum(rng.zipf(1.8, count), 10**6),
            "provenance": rng.integers(10**8, 5 * 10**8, count),
        }
    )
    phrase = pl.when("is_phrase").then(fill("% %", "instance", "second"))
    instance = pl.when(is_hit("nul_bytes")).then(pl.lit("\0")).otherwise(pl.lit(""))
    instance += phrase.otherwise("instance")
    frequency = pl.when(is_hit("bad_frequency")).then(pl.lit("many"))
    row = fill(
        "%,%,%,%,1,1,%",
        *("number", instance, "class"),
        frequency.otherwise(pl.col("frequency").cast(pl.String)),
        modifications(),
    )
    cut = pl.when(is_hit("incomplete")).then(fill("%,%", "number", "instance"))
    lines = frame.select(cut.otherwise(row)).to_series().to_list()
    return "\n".join([*lines, ""]).encode().replace("ÿ".encode(), b"\xff")


def make_files(folder: Path, rows: int, form: str, words: pl.Series) -> list[Path]:
    """Write the files of a dump, as far as they are not there yet, and return them."""
    paths = []
    for start in range(1, rows + 1, FILE_ROWS):
        path = folder / f"tuplesdb-{start:09d}.{form}"
        paths.append(path)
        if path.exists():
            continue
        beside = path.with_suffix(".tmp")
        with beside.open("wb") if form == "csv" else gzip.open(beside, "wb", 6) as file:
            file.write(HEADER)
            for first in range(start, start + FILE_ROWS, BLOCK_ROWS):
                file.write(make_rows(words, first, BLOCK_ROWS))
        beside.replace(path)
    return paths


def command(words: Path, paths: list[Path], work: str = "") -> list[str]:
    """Return the command of a reading in a process of its own."""
    return [sys.executable, "-c", READ, str(words), work, *map(str, paths)]


def read(words: Path, paths: list[Path], work: str = "") -> dict[str, Any]:
    """Read in a process of its own; return the summary, the time and the peak memory."""
    done = subprocess.run(command(words, paths, work), check=True, stdout=subprocess.PIPE)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def check(result: dict[str, Any], rows: int) -> None:
    """Require that the reader has counted what was put into the files."""
    expected = {"rows": rows} | {name: rows // period for name, period in DAMAGE.items()}
    found = {name: result[name] for name in expected}
    assert found == expected, f"expected {expected}, the reader counted {found}"


def kill(words: Path, paths: list[Path], whole: dict[str, Any]) -> dict[str, Any]:
    """Kill a reading half way, read again, and return how that went."""
    with tempfile.TemporaryDirectory() as work:
        process = subprocess.Popen(command(words, paths, work), stdout=subprocess.DEVNULL)
        while len(list(Path(work).glob("*.parquet"))) < len(paths) / 2 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        resumed = read(words, paths, work)
    assert resumed["digest"] == whole["digest"], "the relations after a kill are not the same"
    return resumed


def row(what: str, result: dict[str, Any], paths: list[Path]) -> dict[str, Any]:
    """Return a row of the table."""
    return {
        "what": what,
        "rows": result["rows"],
        "MB": sum(path.stat().st_size for path in paths) // 10**6,
        "s": result["wall"],
        "CPU s": result["cpu"],
        "million rows/s": result["rows"] / result["wall"] / 1e6,
        "peak MiB": int(result["peak"]),
        "pairs": result["pairs"],
        "relations": result["relations"],
    }


def main() -> None:
    """Generate, read, measure and print."""
    parser = common.parser(__doc__)
    parser.add_argument(
        "--millions", type=int, nargs="+", default=[1, 10], help="numbers of rows, in millions"
    )
    parser.add_argument("--forms", nargs="+", choices=["csv", "csv.gz"], default=["csv", "csv.gz"])
    parser.add_argument("--folder", type=Path, help="keeps the files for another time")
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        words, listed = make_words(), folder / "words.txt"
        folder.mkdir(parents=True, exist_ok=True)
        listed.write_text("\n".join(words.sort()[::2]))
        for millions in options.millions:
            for form in options.forms:
                paths = make_files(folder, millions * FILE_ROWS, form, words)
                whole = read(listed, paths)
                check(whole, millions * FILE_ROWS)
                rows.append(row(form, whole, paths))
            if len(paths) > 1:
                rows.append(row(f"{form}, again after a kill", kill(listed, paths, whole), paths))
    common.report("Reading WebIsADB", rows, options.json)


if __name__ == "__main__":
    main()
