"""Cards of spaces and privatizers: what they say is what is stored, and nothing else."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import huggingface_hub
import numpy as np
import pytest
from huggingface_hub import ModelCard
from PIL import Image

from hf_dxprivacy.errors import ArtifactError, InvalidValueError
from hf_dxprivacy.hub import HubCommit, update_config, write_artifact
from hf_dxprivacy.hub.artifact import read_config
from hf_dxprivacy.hub.cards import write_card
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.report import measure
from hf_dxprivacy.spaces import EmbeddingSpace
from hub_server.cards import check_card
from programs import run_python

ROOT = Path(__file__).parents[2]


def make_space(
    metric: str = "euclidean", scale: float = 1.0, size: int = 120, **provenance: Any
) -> EmbeddingSpace:
    vectors = np.random.default_rng(2).uniform(-0.4, 0.4, size=(size, 3))
    words = [f"w{k}" for k in range(size)]
    return EmbeddingSpace.from_vectors(words, vectors, metric, scale, provenance)


def lone_word(metric: str = "euclidean", **provenance: Any) -> EmbeddingSpace:
    """Make a space of which there is nothing to measure or to draw, which takes no time."""
    return make_space(metric, size=1, **provenance)


def saved(space: EmbeddingSpace, folder: Path, license: str | None = None) -> str:
    """Save a space and return its card, whose header the Hub would take."""
    measure(space).save_pretrained(folder, license=license)
    card = (folder / "README.md").read_text("utf-8")
    assert check_card(card) == ([], [])
    return card


def header(card: str) -> dict[str, Any]:
    return dict(ModelCard(card).data.to_dict())


def table(card: str, heading: str) -> list[list[str]]:
    """Return the cells of the first table under a heading, without its two first lines."""
    section = card.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def block(card: str, language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", card, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


@pytest.mark.parametrize("metric", ["euclidean", "poincare"])
def test_every_number_is_one_of_the_stored_figures(tmp_path: Path, metric: str) -> None:
    card = saved(make_space(metric), tmp_path)
    figures = read_config(tmp_path)["figures"]
    distances = {
        {"1": "nearest word", "pairs": "two words at random"}.get(k, f"{k}th nearest word"): row
        for k, row in figures["distances"].items()
    }
    assert len(distances) == 4
    assert {
        label: [float(cell) for cell in cells]
        for label, *cells in table(card, "How far apart the words are")
    } == distances
    points = [
        (f"`{name}`", p["epsilon"], *p["kept"], *(p["support"] or (None, None)), *p["distinct"])
        for name, row in figures["mechanisms"].items()
        for p in row
    ]
    assert len(points) >= 14
    assert [
        (name, *(None if cell == "–" else float(cell.replace(",", "")) for cell in cells))
        for name, *cells in table(card, "What the mechanisms do to the words")
    ] == points
    assert f"nearest neighbour is {figures['unit']:g};" in card
    assert f"on {figures['words']} words evenly spaced" in card
    assert f"over {figures['neighbour_words']} words" in card


def test_facts_are_those_of_the_config(tmp_path: Path) -> None:
    space = make_space("poincare", scale=0.25)
    card = saved(space, tmp_path)
    facts = {name: value for name, value in table(f"\n## facts\n{card}", "facts")}
    assert facts == {
        "words": "120",
        "language": "not stated",
        "dimensions": "3",
        "metric": "hyperbolic distance in the unit ball, times 0.25",
        "stored as": "float64",
        "digest": f"`{space.digest}`",
    }
    assert "The noise of `hyperbolic` exists only for ε > 8." in card
    assert "one single input (for mechanisms over distances, at its origin)" in card


def test_a_tree_is_shown_with_a_few_branches(tmp_path: Path) -> None:
    space = EmbeddingSpace.from_vectors(
        ["soup", "```", "guitar", "bass"], [[0.0], [0.3], [9.0], [9.5]]
    ).build_hierarchy("average")
    space.save_pretrained(tmp_path / "made")
    card = (tmp_path / "made" / "README.md").read_text("utf-8")
    assert space.hierarchy is not None
    assert f"a tree of {len(space.hierarchy.sizes)} clusters ({space.hierarchy.method})" in card
    # A word cannot end the block.
    assert block(card, "text") == "4 words: soup, ''', guitar, bass\n"
    EmbeddingSpace.from_pretrained(tmp_path / "made").save_pretrained(tmp_path / "again")
    again = (tmp_path / "again" / "README.md").read_text("utf-8")
    assert block(again, "text") == block(card, "text")
    # Only a tree that is stored too is shown.
    space.with_hierarchy(None).save_pretrained(tmp_path / "bare")
    space.write_card(tmp_path / "bare")
    assert "## The tree" not in (tmp_path / "bare" / "README.md").read_text("utf-8")


def test_header_says_what_is_known(tmp_path: Path) -> None:
    plain = {"library_name": "hf_dxprivacy", "license": "unknown"}
    tags = ["dx-privacy", "metric-differential-privacy", "differential-privacy", "word-embeddings"]
    assert header(saved(lone_word(), tmp_path)) == {**plain, "tags": tags}
    known = lone_word(
        "poincare", licence="MIT", language=["en", "pt"], source="org/model", commit="0" * 40
    )
    assert header(saved(known, tmp_path)) == {
        **plain,
        "license": "mit",
        "language": ["en", "pt"],
        "base_model": "org/model",
        "tags": [*tags, "poincare-embeddings"],
    }


@pytest.mark.parametrize(
    "provenance",
    [
        {"language": "English"},
        {"language": ["en", 3]},
        {"language": []},
        {"source": "some file.txt", "commit": "0" * 40},
        {"source": "org/model"},
        {"source": ["org/model"], "commit": "0" * 40},
    ],
)
def test_header_makes_nothing_up(tmp_path: Path, provenance: dict[str, Any]) -> None:
    entries = header(saved(lone_word(**provenance), tmp_path))
    assert set(entries) == {"library_name", "license", "tags"}


def test_licence_of_the_source_and_its_text(tmp_path: Path) -> None:
    space = lone_word(
        licence="Word Net", licence_file="LICENSE-WN.txt", licence_text="Do what\nyou want.\n"
    )
    card = saved(space, tmp_path / "own")
    assert (
        header(card).items()
        >= {
            "license": "other",
            "license_name": "word-net",
            "license_link": "LICENSE-WN.txt",
        }.items()
    )
    assert "Word Net; its text is in [LICENSE-WN.txt](LICENSE-WN.txt)." in card
    assert (tmp_path / "own" / "LICENSE-WN.txt").read_text() == "Do what\nyou want.\n"
    assert "you want" not in card
    other = saved(space.rescale(2.0), tmp_path / "other", license="cc-by-4.0")
    assert header(other)["license"] == "cc-by-4.0"
    assert "`cc-by-4.0`. What it was made from is under: Word Net." in other
    assert (tmp_path / "other" / "LICENSE-WN.txt").is_file()


@pytest.mark.parametrize(
    "name", ["../LICENSE", "config.json", "/tmp/LICENSE", "LICENSE/x", 3, None]
)
def test_a_provenance_can_not_choose_which_file_is_written(tmp_path: Path, name: object) -> None:
    space = lone_word(licence="Own", licence_file=name, licence_text="Mine.")
    card = saved(space, tmp_path / "space")
    assert header(card)["license_link"] == "LICENSE"
    assert (tmp_path / "space" / "LICENSE").read_text() == "Mine."
    assert [path.name for path in tmp_path.iterdir()] == ["space"]
    assert read_config(tmp_path / "space")["size"] == 1


def test_a_licence_of_a_stranger_is_text_and_no_markup(tmp_path: Path) -> None:
    card = saved(lone_word(licence="<script>alert(1)</script> [me](http://evil.example)"), tmp_path)
    assert "<script>" not in card.partition("## Licence")[2]
    assert "&lt;script&gt;" in card
    assert "[me](" not in card.partition("## Licence")[2]


def test_the_language_and_what_it_does_not_cover_are_said(tmp_path: Path) -> None:
    card = saved(lone_word(language="en"), tmp_path)
    assert "| language | English |" in card
    assert "most words of any language but English" in " ".join(card.split())


def test_a_missing_licence_is_said_plainly(tmp_path: Path) -> None:
    assert "\n**Unknown.** The licence under which others may use this was not stated" in saved(
        lone_word(), tmp_path
    )
    with pytest.raises(InvalidValueError, match="did you mean 'mit'"):
        lone_word().save_pretrained(tmp_path, license="MIT")


def test_saving_again_makes_the_card_anew(tmp_path: Path) -> None:
    space = make_space("poincare", note="first")
    cards = [
        saved(space, tmp_path),
        saved(space, tmp_path, license="mit"),
        saved(space.rescale(3.0), tmp_path, license="mit"),
        saved(make_space("poincare", note="second"), tmp_path),
        saved(make_space(note="first"), tmp_path),
    ]
    assert len({*cards}) == 5
    assert "first" in cards[0]
    assert "first" not in cards[3]
    assert "hyperbolic" not in cards[4]
    assert saved(space, tmp_path) == cards[0]


def test_figures_of_another_space_are_never_shown(tmp_path: Path) -> None:
    small, large = make_space(), make_space().rescale(10.0)
    saved(small, tmp_path / "small")
    large.figures.update(small.figures)
    card = saved(large, tmp_path / "large")
    assert table(card, "How far apart the words are") != table(
        (tmp_path / "small" / "README.md").read_text("utf-8"), "How far apart the words are"
    )
    assert read_config(tmp_path / "large")["figures"]["digest"] == large.digest


def test_a_card_of_a_folder_made_anew_is_the_same(tmp_path: Path) -> None:
    card = saved(make_space(source="somewhere"), tmp_path)
    EmbeddingSpace.from_pretrained(tmp_path).write_card(tmp_path)
    assert (tmp_path / "README.md").read_text("utf-8") == card


def test_a_folder_with_the_least_an_artifact_needs_gets_a_card(tmp_path: Path) -> None:
    vectors = np.eye(2, dtype=np.float16)
    config = {"metric": "euclidean", "scale": 1.0}
    write_artifact(tmp_path, vectors=vectors, words=["a", "b"], config=config)
    EmbeddingSpace.from_pretrained(tmp_path).write_card(tmp_path, license="mit")
    card = (tmp_path / "README.md").read_text("utf-8")
    assert "| stored as | float16 |" in card
    assert block(card, "json") == "{}\n"


def test_words_at_one_place_have_a_card_without_figures(tmp_path: Path) -> None:
    card = saved(lone_word(), tmp_path / "one")
    assert "How far apart" not in card
    assert "What the mechanisms do" not in card
    assert "ε·d-private per word" in run_python("-c", block(card, "python"), folder=tmp_path)
    assert not (tmp_path / "one" / "privacy.png").exists()


@pytest.mark.parametrize(
    ("name", "metric"),
    [("mine", "euclidean"), ("näme with 'two' \"kinds\" | of # quotes", "poincare")],
)
def test_code_of_a_space_runs(tmp_path: Path, name: str, metric: str) -> None:
    card = saved(make_space(metric), tmp_path / name)
    output = run_python("-c", block(card, "python"), folder=tmp_path)
    assert output.count("ε·d-private per word") == 1
    assert re.match(r"w\d+ w\d+ w\d+ w\d+\.\n", output)
    assert f"\n# {name}\n" in card


def test_machine_and_paths_stay_out(tmp_path: Path) -> None:
    space = EmbeddingSpace.from_pretrained(_stored(lone_word(), tmp_path / "before"))
    card = saved(space, tmp_path / "after")
    assert str(tmp_path) not in card
    assert str(Path.home()) not in card
    assert "before" not in card


def test_provenance_is_quoted_whole(tmp_path: Path) -> None:
    provenance = {
        "source": "```\n# not a heading\n---\n<script>|{{ 7 * 7 }}",
        "recipe": {"dim": 3, "names": ["ä", "b"]},
    }
    card = saved(lone_word(**provenance), tmp_path)
    assert json.loads(block(card, "json")) == provenance
    assert "\n# not a heading" not in card


def test_commit_is_named(tmp_path: Path) -> None:
    space = lone_word()
    commit = HubCommit("org/name", "0123456789" * 4)
    read = EmbeddingSpace(space.words, space.vectors, commit=commit)
    assert f"| read from | `org/name@{commit.sha}` |" in saved(read, tmp_path)


def test_index_and_what_it_costs_are_shown(tmp_path: Path) -> None:
    space = make_space().build_index("IVF4,Flat")
    card = saved(space, tmp_path)
    assert "`IVF4,Flat` (faiss: `IVF4,Flat`)" in card
    assert "Any fixed index keeps the guarantee of the noise mechanisms" in card
    rows = table(card, "Index")
    assert [row[0].partition(" = ")[0] for row in rows] == ["none", "ε", "ε", "ε"]
    names = ("recall_at_1", "recall_at_10", "changed_outputs")
    for cells, row in zip(rows, read_config(tmp_path)["index"]["quality"]["noise"], strict=True):
        assert [float(cell) for cell in cells[1:]] == pytest.approx(
            [row[n] for n in names], abs=6e-4
        )
        assert row["epsilon"] is None or float(cells[0][4:]) == pytest.approx(
            row["epsilon"], rel=0.01
        )
    assert "## Index" not in saved(make_space(), tmp_path)


@pytest.mark.parametrize("quality", [{}, {"words": 3, "noise": [{"epsilon": None}]}, {"noise": 3}])
def test_an_index_that_nobody_measured_is_refused(
    tmp_path: Path, quality: dict[str, object]
) -> None:
    saved(lone_word(), tmp_path)
    update_config(tmp_path, {"index": {"kind": "ivf", "factory": "IVF4,Flat", "quality": quality}})
    with pytest.raises(ArtifactError, match="how good the index is; make it anew"):
        lone_word().write_card(tmp_path)


def test_without_matplotlib_the_card_says_how_to_get_the_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_picture = saved(make_space(), tmp_path)
    assert "](privacy.png)" in with_picture
    with Image.open(tmp_path / "privacy.png") as image:
        assert image.size == (1000, 420)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    without = saved(make_space(), tmp_path)
    assert "pip install 'hf-dxprivacy[report]'" in without
    assert "privacy.png" not in without
    # A picture of an earlier save might show other figures.
    assert not (tmp_path / "privacy.png").exists()
    for heading in ("How far apart the words are", "What the mechanisms do to the words"):
        assert table(without, heading) == table(with_picture, heading)


def _stored(space: EmbeddingSpace, folder: Path) -> Path:
    space.save_pretrained(folder)
    return folder


@pytest.fixture
def privatizer(tmp_path: Path) -> DxPrivatizer:
    space = EmbeddingSpace.from_pretrained(_stored(lone_word(), tmp_path / "secret-place"))
    return DxPrivatizer(
        space, "tem", 7.25, beta=0.01, stopwords={"w1", "w2"}, oov="keep", seed=987654321
    )


def test_card_of_a_privatizer(privatizer: DxPrivatizer, tmp_path: Path) -> None:
    privatizer.save_pretrained(tmp_path / "mine", license="apache-2.0")
    card = (tmp_path / "mine" / "README.md").read_text("utf-8")
    assert check_card(card) == ([], [])
    assert header(card)["license"] == "apache-2.0"
    assert "mechanism `tem` at **ε = 7.25**" in card
    settings = dict(table(card, "Settings"))
    assert settings | {"digest of the space": ""} == {
        "mechanism": "`tem`",
        "ε": "7.25",
        "beta": "0.01",
        "space": "a local folder of the machine it was saved on",
        "digest of the space": "",
        "words out of vocabulary": "**released as they are, without any guarantee**",
        "letter case": "lower",
        "stop words released as they are": "2",
    }
    assert settings["digest of the space"] == f"`{privatizer.space.digest}`"
    unseeded = DxPrivatizer.from_pretrained(tmp_path / "mine")
    assert block(card, "text") == f"{unseeded.guarantee}\n"
    for private in ("987654321", "secret-place", str(tmp_path), "w1"):
        assert private not in card
    output = run_python("-c", block(card, "python"), folder=tmp_path)
    assert str(unseeded.guarantee) in output


@pytest.mark.parametrize(
    ("mechanism", "place"),
    [
        ("tem", "at the centroid of the space"),
        ("krr", "which becomes any word of the space with the same probability"),
    ],
)
def test_a_card_and_its_guarantee_agree_on_unknown_words(
    tmp_path: Path, euclidean_space: EmbeddingSpace, mechanism: str, place: str
) -> None:
    euclidean_space.save_pretrained(tmp_path / "space")
    privatizer = DxPrivatizer(str(tmp_path / "space"), mechanism, 2.0)
    privatizer.save_pretrained(tmp_path / "mine")
    card = (tmp_path / "mine" / "README.md").read_text("utf-8")
    settings = dict(table(card, "Settings"))
    assert settings["words out of vocabulary"] == f"one single input, {place}"
    assert f"all of them are one input, {place}." in block(card, "text")


@pytest.mark.parametrize(
    ("space", "place"),
    [
        (("wordnet-gloss", None), "`wordnet-gloss`, which ships with hf-dxprivacy"),
        (("org/name", "0" * 40), f"`org/name` at commit `{'0' * 40}`"),
    ],
)
def test_a_privatizer_says_where_its_space_is(
    tmp_path: Path, space: tuple[str, str | None], place: str
) -> None:
    decisions = {
        "mechanism": "laplace",
        "epsilon": 1e-07,
        "options": {"gamma": None},
        "space": {"name": space[0], "commit": space[1], "digest": "d" * 64},
        "stopwords": [],
        "oov": "drop",
        "case": "preserve",
        "ships": space[1] is None,
        "unknown": "anywhere",
    }
    write_card(tmp_path, "privatizer", decisions, "what holds", license=None, name="org/mine")
    card = (tmp_path / "README.md").read_text("utf-8")
    settings = dict(table(card, "Settings"))
    assert settings["space"] == place
    assert settings["ε"] == "1e-07"
    assert settings["letter case"] == "copied from the original, and so released"
    assert "gamma" not in settings
    assert 'from_pretrained("org/mine")' in card
    assert header(card)["license"] == "unknown"


@pytest.mark.skipif(
    int(huggingface_hub.__version__.partition(".")[0]) < 2,
    reason="before version 2, the client asks huggingface.co alone, whatever HF_ENDPOINT says",
)
@pytest.mark.usefixtures("hub")
def test_the_client_has_the_headers_checked_by_the_hub(
    tmp_path: Path, privatizer: DxPrivatizer
) -> None:
    card = saved(lone_word(licence="WordNet"), tmp_path / "space")
    privatizer.save_pretrained(tmp_path / "privatizer", license="mit")
    ModelCard(card).validate()
    ModelCard.load(tmp_path / "privatizer" / "README.md").validate()
    with pytest.raises(ValueError, match="must be one of"):
        ModelCard(card.replace("license: other", "license: wordnet")).validate()


def test_importing_is_light() -> None:
    code = (
        "import sys, hf_dxprivacy.hub.cards; "
        "print([m for m in ('huggingface_hub', 'jinja2', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
