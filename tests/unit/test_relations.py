"""Reading WordNet: synsets, the is-a hierarchy of synsets and of words."""

from pathlib import Path

import numpy as np
import pytest
from wordnet_folder import NOUNS, OTHERS, Entry, write_wordnet

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.training.relations import Relations, read_wordnet
from hf_dxprivacy.training.wordnet import (
    is_word,
    read_morphology,
    read_synsets,
    read_tag_counts,
    words_of,
)


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    return write_wordnet(tmp_path / "wordnet")


def _by_name(relations: Relations) -> set[tuple[str, str]]:
    return {(relations.nodes[node], relations.nodes[top]) for node, top in relations.pairs}


def test_synsets_keep_lemmas_glosses_and_pointers(wordnet: Path) -> None:
    synsets = {synset.key: synset for synset in read_synsets(wordnet)}
    assert len(synsets) == len(NOUNS) + len(OTHERS)
    assert synsets[("n", 9)].lemmas == ("Paris", "City_of_Light")
    assert synsets[("n", 9)].hypernyms() == [("n", 8)]
    assert synsets[("n", 4)].gloss == 'food made of milk; "Brie is a cheese"'
    assert synsets[("a", 1)].lemmas == ("soft",)
    assert [link.symbol for link in synsets[("r", 1)].pointers] == ["\\"]


def test_closure_over_synsets_has_every_class_above(wordnet: Path) -> None:
    relations = read_wordnet(wordnet)
    assert len(relations.nodes) == len(NOUNS)
    above_brie = {top for node, top in _by_name(relations) if node == "brie.n.01"}
    assert above_brie == {"cheese.n.01", "food.n.01", "object.n.01", "entity.n.01"}
    assert ("paris.n.01", "entity.n.01") in _by_name(relations)
    # 0 + 1 + 2 + 3 + 4 + 2 + 1 + 2 + 3 + 2, entry by entry.
    assert len(relations) == 20


def test_without_closure_only_what_is_directly_above(wordnet: Path) -> None:
    relations = read_wordnet(wordnet, closure=False)
    assert len(relations) == len(NOUNS) - 1
    assert ("brie.n.01", "cheese.n.01") in _by_name(relations)
    assert ("brie.n.01", "food.n.01") not in _by_name(relations)


def test_words_are_single_lower_case_and_have_the_classes_of_all_senses(wordnet: Path) -> None:
    named = _by_name(read_wordnet(wordnet, nodes="words"))
    assert {top for node, top in named if node == "food"} == {"object", "entity", "place"}
    assert ("paris", "city") in named
    assert ("hound", "object") in named
    assert all(is_word(word) and word.islower() for pair in named for word in pair)


def test_first_senses_only(wordnet: Path) -> None:
    named = _by_name(read_wordnet(wordnet, nodes="words", max_senses=1))
    assert {top for node, top in named if node == "food"} == {"object", "entity"}


def test_a_word_is_never_paired_with_itself(tmp_path: Path) -> None:
    nouns = [
        Entry("n", 1, ("thing",), "something"),
        Entry("n", 2, ("thing", "gadget"), "a thing", [("@", 1, "n")]),
    ]
    relations = read_wordnet(write_wordnet(tmp_path, nouns + list(OTHERS)), nodes="words")
    assert _by_name(relations) == {("gadget", "thing")}


def test_direct_undoes_the_closure(wordnet: Path) -> None:
    closed, direct = read_wordnet(wordnet), read_wordnet(wordnet, closure=False)
    assert _by_name(closed.direct()) == _by_name(direct)


def test_direct_keeps_what_two_synonyms_have_above() -> None:
    relations = Relations.from_names([("a", "b"), ("b", "a"), ("a", "top"), ("b", "top")])
    assert len(relations.direct()) == 4


def test_reversed_joined_and_among() -> None:
    relations = Relations.from_names([("dog", "animal"), ("cat", "animal"), ("oak", "tree")])
    both = relations.joined(relations.reversed()).joined(relations)
    assert len(both) == 6
    assert both.degrees().tolist() == [4, 2, 2, 2, 2]
    animals = relations.among(["dog", "animal", "oak"])
    assert animals.nodes == ("animal", "dog")
    assert _by_name(animals) == {("dog", "animal")}


def test_from_names_numbers_given_nodes_first() -> None:
    relations = Relations.from_names([("b", "a"), ("b", "a"), ("c", "a")], nodes=["c", "b"])
    assert relations.nodes == ("c", "b", "a")
    assert relations.pairs.tolist() == [[0, 2], [1, 2]]


def test_relations_refuse_what_does_not_fit() -> None:
    with pytest.raises(InvalidValueError, match="distinct nodes"):
        Relations(("a", "a"), np.zeros((0, 2), dtype=np.int64))
    with pytest.raises(InvalidValueError, match=r"rows from 0 to 1, got 0 to 2"):
        Relations(("a", "b"), np.array([[0, 2]]))
    with pytest.raises(InvalidValueError, match=r"shape \(m, 2\), got \(1, 3\)"):
        Relations(("a", "b"), np.zeros((1, 3), dtype=np.int64))
    with pytest.raises(InvalidValueError, match="same nodes"):
        Relations.from_names([("a", "b")]).joined(Relations.from_names([("a", "c")]))


@pytest.mark.parametrize("name", ["data.noun", "index.noun"])
def test_a_missing_file_is_named(wordnet: Path, name: str) -> None:
    (wordnet / name).unlink()
    with pytest.raises(ArtifactError, match=rf"{name} is missing.*wordnet-base"):
        read_wordnet(wordnet)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("data.noun", "00000011 03 n 02 one 0 000 | a word too few"),
        ("data.noun", "00000011 03 n 01 word 0 000 no gloss"),
        ("data.noun", "00000011 03 x 01 word 0 000 | no such part of speech"),
        ("data.noun", "<html>not found</html>"),
        ("index.noun", "word n 2 0 2 0 00000001"),
        ("index.noun", "word"),
    ],
)
def test_a_garbled_line_is_named(wordnet: Path, name: str, line: str) -> None:
    lines = (wordnet / name).read_text().splitlines()
    (wordnet / name).write_text("\n".join([*lines, line]))
    with pytest.raises(ArtifactError, match=rf"{name}, line {len(lines) + 1}: not in the WordNet"):
        read_wordnet(wordnet)


def test_a_truncated_file_is_refused(wordnet: Path) -> None:
    kept = (wordnet / "data.noun").read_text().splitlines()[:-1]
    (wordnet / "data.noun").write_text("\n".join(line for line in kept if "| a large" not in line))
    with pytest.raises(ArtifactError, match=r"00000009 \(n\) points to 00000008 \(n\)"):
        read_wordnet(wordnet)


def test_files_of_two_versions_are_refused(wordnet: Path) -> None:
    index = (wordnet / "index.noun").read_text()
    (wordnet / "index.noun").write_text(index.replace("00000004", "00000044"))
    with pytest.raises(ArtifactError, match=r"index\.noun does not list 'cheese'.*00000004"):
        read_wordnet(wordnet)


def test_binary_and_empty_files_are_refused(wordnet: Path) -> None:
    (wordnet / "data.noun").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ArtifactError, match=r"data\.noun cannot be read"):
        read_wordnet(wordnet)
    (wordnet / "data.noun").write_text("")
    with pytest.raises(ArtifactError, match=r"data\.noun holds no synset"):
        read_wordnet(wordnet)


def test_a_cycle_is_refused(tmp_path: Path) -> None:
    nouns = [
        Entry("n", 1, ("hen",), "from an egg", [("@", 2, "n")]),
        Entry("n", 2, ("egg",), "from a hen", [("@", 1, "n")]),
    ]
    with pytest.raises(ArtifactError, match=r"data\.noun: 0000000[12] is above itself"):
        read_wordnet(write_wordnet(tmp_path, nouns + list(OTHERS)))


def test_unknown_options_are_refused(wordnet: Path) -> None:
    with pytest.raises(InvalidValueError, match="nodes to be one of 'synsets', 'words'"):
        read_wordnet(wordnet, nodes="lemmas")
    with pytest.raises(InvalidValueError, match="max_senses >= 1"):
        read_wordnet(wordnet, nodes="words", max_senses=0)


def test_words_of_keeps_inner_apostrophes_only() -> None:
    assert words_of("Don't 'quote' rock'n'roll, o'clock' 4-H x_y") == [
        "don't", "quote", "rock'n'roll", "o'clock", "h", "x", "y",
    ]  # fmt: skip
    assert is_word("Café")
    assert not any(map(is_word, ["", "a b", "a_b", "a-b", "'a", "a'", "4h", "o''k"]))


def test_base_forms_by_rule_exception_and_apostrophe(wordnet: Path) -> None:
    morphology = read_morphology(wordnet)
    assert morphology.bases("dogs") == ["dog"]
    assert morphology.bases("eating") == ["eat"]
    assert morphology.bases("ate") == ["eat"]
    assert morphology.bases("softest") == ["soft"]
    assert morphology.bases("dog's") == ["dog"]
    assert morphology.bases("dog") == []
    assert morphology.bases("unheardings") == []


def test_tag_counts_add_up_senses_of_single_words(tmp_path: Path) -> None:
    tags = "dog%1:03:00:: 1 5\ndog%1:18:00:: 2 3\nhot_dog%1:13:00:: 1 9\n"
    folder = write_wordnet(tmp_path, tags=tags)
    assert read_tag_counts(folder) == {"dog": 8}
    (folder / "cntlist.rev").write_text("dog%1:03:00:: 1\n")
    with pytest.raises(ArtifactError, match=r"cntlist\.rev, line 1: not in the WordNet"):
        read_tag_counts(folder)


def test_parts_are_numbered_by_their_size() -> None:
    pairs = [("a", "b"), ("c", "d"), ("e", "d"), ("d", "f")]
    relations = Relations.from_names(pairs, nodes=["alone", *"abcdef"])
    assert relations.components().tolist() == [2, 1, 1, 0, 0, 0, 0]
    largest = relations.largest_component()
    assert largest.nodes == ("c", "d", "e", "f")
    assert _by_name(largest) == {("c", "d"), ("e", "d"), ("d", "f")}
    assert largest.components().max() == 0


def test_of_parts_of_equal_size_the_first_is_the_largest() -> None:
    relations = Relations.from_names([("c", "d"), ("b", "a")])
    assert relations.largest_component().nodes == ("a", "b")


def test_nothing_has_no_parts() -> None:
    assert len(Relations.from_names([]).largest_component()) == 0


def test_a_subtree_is_named_by_its_root() -> None:
    """Direct pairs suffice: what is below is followed, also around a cycle."""
    pairs = [("pug", "dog"), ("dog", "mammal"), ("mammal", "animal"), ("trout", "fish")]
    relations = Relations.from_names([*pairs, ("fish", "animal"), ("dog", "pug")])
    below = relations.below("mammal")
    assert set(below.nodes) == {"mammal", "dog", "pug"}
    named = {tuple(below.nodes[row] for row in pair) for pair in below.pairs}
    assert named == {("pug", "dog"), ("dog", "mammal"), ("dog", "pug")}
    with pytest.raises(InvalidValueError, match="got 'mamal'; did you mean 'mammal'"):
        relations.below("mamal")
    with pytest.raises(InvalidValueError, match="nothing is below 'trout'"):
        relations.below("trout")
