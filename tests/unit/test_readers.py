"""Files of word vectors: what is accepted comes out right, what is not is named."""

import codecs
import gzip
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.spaces.vector_readers import read_vectors

WORDS = ["the", ".", "naïve", "no\u00a0break", "\u0085", "日本", "123", "-1.5", "'", '"', "#"]
VECTORS = (np.arange(44, dtype=np.float32).reshape(11, 4) - 20) / 3

Writer = Callable[[list[str], np.ndarray], bytes]


def rows_of_text(words: list[str], vectors: np.ndarray, end: str = "\n") -> str:
    rows = zip(words, vectors, strict=True)
    return "".join(f"{word} {' '.join(map(repr, row.tolist()))}{end}" for word, row in rows)


def glove(words: list[str], vectors: np.ndarray) -> bytes:
    return rows_of_text(words, vectors).encode()


def word2vec_text(words: list[str], vectors: np.ndarray) -> bytes:
    return f"{len(words)} {vectors.shape[1]}\n{rows_of_text(words, vectors)}".encode()


def fasttext(words: list[str], vectors: np.ndarray) -> bytes:
    return (
        f"{len(words)} {vectors.shape[1]}\n{rows_of_text(words, vectors, ' ' + chr(10))}".encode()
    )


def windows(words: list[str], vectors: np.ndarray) -> bytes:
    return word2vec_text(words, vectors).replace(b"\n", b"\r\n")


def marked(words: list[str], vectors: np.ndarray) -> bytes:
    return codecs.BOM_UTF8 + glove(words, vectors)


def marked_header(words: list[str], vectors: np.ndarray) -> bytes:
    return codecs.BOM_UTF8 + word2vec_text(words, vectors)


def unfinished(words: list[str], vectors: np.ndarray) -> bytes:
    return glove(words, vectors).rstrip(b"\n")


def scientific(words: list[str], vectors: np.ndarray) -> bytes:
    lines = [
        f"{word} " + " ".join(f"{number:+.9E}" for number in row)
        for word, row in zip(words, vectors, strict=True)
    ]
    return "\n".join(lines).encode()


def binary(words: list[str], vectors: np.ndarray, end: bytes = b"\n") -> bytes:
    rows = zip(words, vectors.astype("<f4"), strict=True)
    return f"{len(words)} {vectors.shape[1]}\n".encode() + b"".join(
        word.encode() + b" " + row.tobytes() + end for word, row in rows
    )


def gensim_binary(words: list[str], vectors: np.ndarray) -> bytes:
    return binary(words, vectors, end=b"")


WRITERS = [
    glove,
    word2vec_text,
    fasttext,
    windows,
    marked,
    marked_header,
    unfinished,
    scientific,
    binary,
    gensim_binary,
]


@pytest.fixture(params=[False, True], ids=["plain", "gzip"])
def save(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[bytes], Path]:
    """Write content plain or compressed; the name never tells which."""

    def save(content: bytes) -> Path:
        path = tmp_path / "vectors.bin"
        path.write_bytes(gzip.compress(content, 1) if request.param else content)
        return path

    return save


@pytest.mark.parametrize("write", WRITERS)
def test_every_format_reads_back(save: Callable[[bytes], Path], write: Writer) -> None:
    words, vectors = read_vectors(save(write(WORDS, VECTORS)), progress=False)
    assert words == WORDS
    assert vectors.dtype == np.float32
    np.testing.assert_array_equal(vectors, VECTORS)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("limit", [1, 5, 11, 12])
def test_the_limit_takes_rows_from_the_top(
    save: Callable[[bytes], Path], write: Writer, limit: int
) -> None:
    words, vectors = read_vectors(save(write(WORDS, VECTORS)), limit=limit, progress=False)
    assert words == WORDS[:limit]
    np.testing.assert_array_equal(vectors, VECTORS[:limit])


@pytest.mark.parametrize("write", WRITERS)
def test_rows_beyond_the_limit_are_not_looked_at(
    save: Callable[[bytes], Path], write: Writer
) -> None:
    broken = VECTORS.copy()
    broken[7, 2] = np.nan
    assert len(read_vectors(save(write(WORDS, broken)), limit=7, progress=False)[0]) == 7


@pytest.mark.parametrize("write", [binary, gensim_binary, glove, fasttext])
def test_files_of_many_chunks_read_back(save: Callable[[bytes], Path], write: Writer) -> None:
    vectors = np.random.default_rng(1).standard_normal((1800, 300)).astype(np.float32)
    words = [f"word{row}" for row in range(len(vectors))]
    found, read = read_vectors(save(write(words, vectors)), progress=False)
    assert found == words
    np.testing.assert_array_equal(read, vectors)


def test_memory_is_that_of_the_matrix(tmp_path: Path) -> None:
    vectors = np.random.default_rng(2).standard_normal((6000, 400)).astype(np.float32)
    path = tmp_path / "vectors.txt"
    path.write_bytes(glove([f"w{row}" for row in range(len(vectors))], vectors))
    read_vectors(path, limit=1, progress=False)
    tracemalloc.start()
    read = read_vectors(path, progress=False)[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # A chunk of 4 MB of text is held as lines, as one text, and parsed.
    assert peak < 1.1 * read.nbytes + 6 * (1 << 22)
    assert path.stat().st_size > 3 * (1.1 * read.nbytes + 6 * (1 << 22)) / 4


def test_words_may_contain_spaces(save: Callable[[bytes], Path]) -> None:
    words = ["the", ". . .", "at name@domain.com", "a"]
    found, vectors = read_vectors(save(glove(words, VECTORS[:4])), progress=False)
    assert found == words
    np.testing.assert_array_equal(vectors, VECTORS[:4])


def test_numbers_in_any_notation_are_read_to_float32(save: Callable[[bytes], Path]) -> None:
    numbers = ["0.1", "-1.17549435e-38", "16777217", "1e-46", "3.4028234e38", ".5", "7.", "-0"]
    text = ("w " + " ".join(numbers) + "\n").encode()
    _, vectors = read_vectors(save(text), progress=False)
    np.testing.assert_array_equal(vectors[0], np.array(numbers, dtype=np.float64).astype("f4"))


def test_a_progress_bar_counts_the_bytes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.vec"
    path.write_bytes(glove(WORDS, VECTORS))
    read_vectors(path)
    assert "some.vec: 100%" in capsys.readouterr().err
    read_vectors(path, progress=False)
    assert capsys.readouterr().err == ""


def line(number: int) -> str:
    return rf"vectors\.bin, line {number}: "


GOOD = "a 1 2 3\nb 4 5 6\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (GOOD + "c 7 8\n", line(3) + "expected a word and 3 numbers .* got 3 fields; .* ragged"),
        (GOOD + "c\n", line(3) + "expected a word and 3 numbers .* got 1 fields"),
        (GOOD + "c 7 8 9 10\n", line(3) + "expected a word and 3 numbers .* got 5 fields"),
        (GOOD + "\nc 7 8 9\n", line(3) + "expected a word and 3 numbers .* got 1 fields"),
        (GOOD + "c 7  9\n", line(3) + "expected 3 numbers .* got ''"),
        (GOOD + "c 7 x 9\n", line(3) + "expected 3 numbers .* got 'x'"),
        (GOOD + "c 7 1_0 9\n", line(3) + "expected 3 numbers .* got '1_0'"),
        (GOOD + "c 7 True 9\n", line(3) + "expected 3 numbers .* got 'True'"),
        (GOOD + "c 7 0x1 9\n", line(3) + "expected 3 numbers .* got '0x1'"),
        (GOOD + "c 7 1,5 9\n", line(3) + "expected 3 numbers .* got '1,5'"),
        (GOOD + "c 7 1-2 9\n", line(3) + "expected 3 numbers .* got '1-2'"),
        (GOOD + "c 7 nan 9\n", line(3) + "the vector of 'c' .* NaN"),
        (GOOD + "c 7 -inf 9\n", line(3) + "the vector of 'c' .* infinite"),
        (GOOD + "c 7 1e39 9\n", line(3) + "the vector of 'c' .* too large for float32"),
        (GOOD + "c 7 1e999 9\n", line(3) + "the vector of 'c' .* too large for float32"),
        (GOOD + "b 7 8 9\n", line(3) + "the word 'b' is already on line 2"),
        (GOOD + " 7 8 9\n", line(3) + "the word is empty"),
        (GOOD + "c\rd 7 8 9\n", line(3) + "the word 'c.rd' contains a line break"),
        ("a\t1\t2\n", line(1) + "expected a word and its numbers, separated by single spaces"),
        ("\n" + GOOD, line(1) + "expected a word and its numbers"),
        ("2 3\n" + GOOD + "c 1 2 3\n", "the header announces 2 rows, the file has 3"),
        ("3 3\n" + GOOD, "the header announces 3 rows, the file has 2"),
        ("2 3\na 1 2 3\nb 4 5\n", line(3) + "expected a word and 3 numbers"),
        ("2 3\na 1 2 3\na 4 5 6\n", line(3) + "the word 'a' is already on line 2"),
        ("2 4\n" + GOOD, line(2) + "expected a word and 4 numbers"),
        ("2 2\n" + GOOD, line(2) + "expected a word and 2 numbers"),
        ("0 3\n", "expected at least one word, the file has no rows"),
        ("2 0\na\nb\n", line(1) + "expected dimension >= 1, got 0"),
        ("2 " + "9" * 5000 + "\n", line(1) + "the vector of '2' .* too large for float32"),
        ("9" * 5000 + " 3\n" + GOOD, line(2) + "expected a word and 1 numbers"),
        ("9999999999 9999999999\n" + GOOD, line(2) + "expected a word and 9999999999 numbers"),
        ("", "expected at least one word, the file is empty"),
    ],
)
def test_malformed_text_is_refused_with_file_and_line(
    save: Callable[[bytes], Path], text: str, message: str
) -> None:
    path = save(text.encode())
    with pytest.raises(InvalidValueError, match=message) as caught:
        read_vectors(path, progress=False)
    assert str(path) in str(caught.value)


def test_words_that_are_not_utf8_are_refused(save: Callable[[bytes], Path]) -> None:
    with pytest.raises(InvalidValueError, match=line(2) + r"the word b'caf\\xe9' is not UTF-8"):
        read_vectors(save(b"a 1 2\ncaf\xe9 3 4\n"), progress=False)


def test_words_equal_after_normalisation_are_two_words(save: Callable[[bytes], Path]) -> None:
    words = ["é", "e\u0301"]
    assert read_vectors(save(glove(words, VECTORS[:2])), progress=False)[0] == words


def test_a_problem_far_down_is_named_by_its_line(save: Callable[[bytes], Path]) -> None:
    words = [f"w{row}" for row in range(2500)]
    lines = glove(words, np.full((2500, 300), 0.125)).splitlines(keepends=True)
    lines[2400] = lines[2400].replace(b"0.125", b"0.1.5", 1)
    with pytest.raises(InvalidValueError, match=line(2401) + r"expected 300 .* got '0\.1\.5'"):
        read_vectors(save(b"".join(lines)), progress=False)


@pytest.mark.parametrize("end", [b"\n", b""])
@pytest.mark.parametrize("cut", [1, 9, 17, 30])
def test_truncated_binary_is_refused(save: Callable[[bytes], Path], end: bytes, cut: int) -> None:
    content = binary(WORDS, VECTORS, end)[: -cut - len(end)]
    row = 11 if cut < 18 else 10
    with pytest.raises(InvalidValueError, match=rf"row {row}: the file ends .* 11 rows of 4"):
        read_vectors(save(content), progress=False)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "b", "a"], "row 3: the word 'a' is already on row 1"),
        (["a", "", "c"], "row 2: the word is empty"),
        (["a", "b\r", "c"], "row 2: the word 'b.r' contains a line break"),
    ],
)
def test_malformed_words_of_a_binary_file_are_refused(
    save: Callable[[bytes], Path], words: list[str], message: str
) -> None:
    with pytest.raises(InvalidValueError, match=message):
        read_vectors(save(binary(words, VECTORS[:3])), progress=False)


def test_a_binary_file_with_nan_is_refused(save: Callable[[bytes], Path]) -> None:
    vectors = VECTORS.copy()
    vectors[4, 1] = np.nan
    with pytest.raises(InvalidValueError, match=r"row 5: the vector of '.x85' .* NaN"):
        read_vectors(save(binary(WORDS, vectors)), progress=False)


def test_a_binary_file_with_more_than_announced_is_refused(save: Callable[[bytes], Path]) -> None:
    content = binary(WORDS, VECTORS) + binary(["x"], VECTORS[:1])[4:]
    with pytest.raises(InvalidValueError, match="more follows after the 11 announced rows"):
        read_vectors(save(content), progress=False)


@pytest.mark.parametrize("write", [glove, binary])
@pytest.mark.parametrize("part", [0.3, 0.9])
def test_a_truncated_gzip_is_refused(tmp_path: Path, write: Writer, part: float) -> None:
    vectors = np.random.default_rng(3).standard_normal((200, 50)).astype(np.float32)
    content = gzip.compress(write([f"w{row}" for row in range(200)], vectors))
    path = tmp_path / "vectors.gz"
    path.write_bytes(content[: int(part * len(content))])
    with pytest.raises(InvalidValueError, match=r"vectors\.gz: the gzip stream is truncated"):
        read_vectors(path, progress=False)


def test_a_damaged_gzip_is_refused(tmp_path: Path) -> None:
    content = bytearray(gzip.compress(glove(WORDS, VECTORS)))
    content[-6] ^= 1
    path = tmp_path / "vectors.gz"
    path.write_bytes(content)
    with pytest.raises(InvalidValueError, match=r"vectors\.gz: the gzip stream is .* damaged"):
        read_vectors(path, progress=False)


@pytest.mark.parametrize("write", [glove, binary])
def test_a_row_that_would_fill_the_memory_is_refused(tmp_path: Path, write: Writer) -> None:
    content = write(WORDS[:1], VECTORS[:1]).replace(b"1 ", b"3 ", 1 if write is binary else 0)
    path = tmp_path / "vectors.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(content)
        for _ in range(80):
            file.write(b"x" * (1 << 20))
    with pytest.raises(InvalidValueError, match=r"vectors\.gz, (line|row) 2: longer than 64 MiB"):
        read_vectors(path, progress=False)


def test_a_zip_archive_says_to_unpack_it(tmp_path: Path) -> None:
    path = tmp_path / "glove.zip"
    path.write_bytes(b"PK\x03\x04" + bytes(100))
    with pytest.raises(InvalidValueError, match=r"glove\.zip: this is a zip archive; unpack it"):
        read_vectors(path, progress=False)


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(bytes(2 << 20))
    with pytest.raises(InvalidValueError, match=r"model\.bin, line 1: longer than"):
        read_vectors(path, progress=False)


@pytest.mark.parametrize(
    ("limit", "error", "message"),
    [
        (0, InvalidValueError, "expected limit >= 1, got limit=0"),
        (2.5, InvalidTypeError, "expected limit to be an integer, got limit=2.5"),
    ],
)
def test_a_limit_is_a_positive_integer(
    tmp_path: Path, limit: int, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_vectors(tmp_path / "x", limit=limit)


def test_a_space_is_made_of_the_file(save: Callable[[bytes], Path]) -> None:
    path = save(fasttext(WORDS, VECTORS))
    space = EmbeddingSpace.from_text_vectors(path, limit=6, progress=False)
    assert space.words == tuple(WORDS[:6])
    assert space.metric == "euclidean"
    assert space.provenance == {"source": "vectors.bin", "limit": 6}
    np.testing.assert_array_equal(space.vectors, VECTORS[:6])


@pytest.mark.realdata
def test_published_glove_vectors_read_back(data: Path) -> None:
    embeddings = data / "embeddings"
    read = EmbeddingSpace.from_text_vectors(
        embeddings / "glove.840B.300d-5000.txt.gz", progress=False
    )
    with np.load(embeddings / "glove.840B.300d-33860.npz") as stored:
        assert read.words == tuple(stored["words"][:5000].tolist())
        np.testing.assert_allclose(read.vectors, stored["vectors"][:5000], atol=0.0015)
