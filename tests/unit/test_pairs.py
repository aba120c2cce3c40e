"""Relations from pairs and from triples."""

import gzip
from pathlib import Path

import pytest

from hf_dxprivacy.errors import ArtifactError
from hf_dxprivacy.training import Relations, read_conceptnet, read_pairs

ASSERTIONS = (
    "/a/1\t/r/IsA\t/c/en/dog/n\t/c/en/animal\t{}",
    "/a/2\t/r/IsA\t/c/en/dog\t/c/en/animal/n/wn/animal\t{}",
    "/a/3\t/r/IsA\t/c/en/hot_dog\t/c/en/food\t{}",
    "/a/4\t/r/IsA\t/c/en/dog/n\t/c/en/dog/v\t{}",
    "/a/5\t/r/IsA\t/c/de/hund\t/c/en/animal\t{}",
    "/a/6\t/r/AtLocation\t/c/en/dog\t/c/en/house\t{}",
)


def _named(relations: Relations) -> set[tuple[str, str]]:
    return {(relations.nodes[node], relations.nodes[above]) for node, above in relations.pairs}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_pairs_keep_their_names(tmp_path: Path, end: str) -> None:
    lines = ["Dog\tanimal", "", "hot dog\tfood", "Dog\tanimal", "dog\tanimal"]
    (tmp_path / "pairs.tsv").write_bytes(end.join(lines).encode())
    relations = read_pairs(tmp_path / "pairs.tsv", progress=False)
    assert _named(relations) == {("Dog", "animal"), ("hot dog", "food"), ("dog", "animal")}
    assert len(relations) == 3


@pytest.mark.parametrize("line", ["dog", "dog\tanimal\tthing", "dog\t", "\tanimal", "dog animal"])
def test_a_line_that_is_no_pair_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "pairs.tsv").write_text(f"cat\tanimal\n\n{line}\n")
    with pytest.raises(ArtifactError, match=r"pairs\.tsv, line 3: expected a node, a tab"):
        read_pairs(tmp_path / "pairs.tsv", progress=False)


def test_a_line_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_bytes(b"cat\tanimal\ncaf\xe9\tplace\n")
    with pytest.raises(ArtifactError, match=r"pairs\.tsv, line 2: not UTF-8"):
        read_pairs(tmp_path, progress=False)


def test_conceptnet_has_terms_of_one_language_and_relation(tmp_path: Path) -> None:
    (tmp_path / "assertions.csv.gz").write_bytes(gzip.compress("\n".join(ASSERTIONS).encode()))
    named = _named(read_conceptnet(tmp_path / "assertions.csv.gz", progress=False))
    assert named == {("dog", "animal"), ("hot_dog", "food")}
    places = read_conceptnet(tmp_path, relation="AtLocation", progress=False)
    assert _named(places) == {("dog", "house")}


@pytest.mark.parametrize("line", ["/a/7\t/r/IsA\t/c/en/dog", "dog\tIsA\tanimal\t1"])
def test_a_line_that_is_no_assertion_is_named(tmp_path: Path, line: str) -> None:
    (tmp_path / "assertions.csv").write_text("\n".join([*ASSERTIONS, line]))
    with pytest.raises(ArtifactError, match=r"assertions\.csv, line 7: expected an identifier"):
        read_conceptnet(tmp_path / "assertions.csv", progress=False)
