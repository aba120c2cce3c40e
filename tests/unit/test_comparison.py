"""Comparison of mechanisms on texts of one's own: what is measured, left out, kept and said."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from datasets import Dataset, DatasetDict
from made_up_texts import texts_by_author

from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.evaluation import Comparison, External, compare, frontier
from hf_dxprivacy.evaluation.candidates import Candidate, matched, running_words
from hf_dxprivacy.evaluation.evaluation_data import prepare
from hf_dxprivacy.evaluation.scores import QUICK
from hf_dxprivacy.mechanisms import TruncatedExponential, create_mechanism
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.sentences import SentencePool
from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
from hf_dxprivacy.slots import ContentWordSelector
from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer
from hf_dxprivacy.spaces import EmbeddingSpace

RNG = np.random.default_rng
AUTHORS = 4


def labelled(space: EmbeddingSpace, rows: int = 160, mixed: bool = False) -> Dataset:
    """Return texts whose words tell their author, and their label with it."""
    texts, authors = texts_by_author(space.words[:60], AUTHORS, rows // AUTHORS, 12, seed=1)
    labels = [author[-1] in "01" for author in authors]
    if mixed:
        order = RNG(3).permutation(len(texts))
        authors, labels = ([column[k] for k in order] for column in (authors, labels))
    return Dataset.from_dict({"text": texts, "label": labels, "author": authors})


def run(data: Dataset, space: EmbeddingSpace, **options: Any) -> Comparison:
    """Compare quickly, with all columns that the data has."""
    columns = {"label_column": "label", "user_column": "author"}
    given = {key: name for key, name in columns.items() if name in data.column_names}
    settings = {"mechanisms": ["tem"], "epsilon": 3.0, "seed": 7, "progress": False, "pools": ()}
    return compare(data, space=space, quick=True, **{**given, **settings, **options})


@pytest.fixture(scope="module")
def found(euclidean_space: EmbeddingSpace) -> Comparison:
    epsilons = {"tem": [1.0, 3.0, 6.0], "krr": [2.0, 6.0, 9.0]}
    return run(
        labelled(euclidean_space), euclidean_space, mechanisms=["tem", "krr"], epsilon=epsilons
    )


def test_there_is_a_row_for_each_mechanism_and_epsilon(found: Comparison) -> None:
    assert [(row.mechanism, row.epsilon) for row in found.rows] == [
        ("none", None), *(("tem", e) for e in (1.0, 3.0, 6.0)), *(("krr", e) for e in (2, 6, 9))
    ]  # fmt: skip
    plain, *others = found.rows
    assert plain.figures["stays"].value == plain.figures["b1"].value == 1.0
    assert plain.figures["trained"].low > 0.7
    assert plain.figures["author"].value > 0.6
    assert plain.figures["gain"].value == 0.0
    assert {row.verified for row in others} == {"exact"}
    for row in others:
        low, value = row.figures["stays"].value, row.figures["b1"].value
        assert 0.0 <= low <= 1.0
        assert value >= low - 0.1
        assert row.local is not None
        assert row.local_text == pytest.approx(12 * row.local)


def test_more_epsilon_keeps_more_and_tells_more(found: Comparison) -> None:
    for name in ("tem", "krr"):
        mine = [row for row in found.rows if row.mechanism == name]
        for figure in ("stays", "kept", "read", "b1", "b10"):
            values = [row.figures[figure].value for row in mine]
            assert values == sorted(values), (name, figure)


def test_krr_is_exactly_as_its_law_says(found: Comparison) -> None:
    row = next(row for row in found.rows if (row.mechanism, row.epsilon) == ("krr", 6.0))
    stays = math.exp(6.0) / (math.exp(6.0) + 499)
    # 160 texts of 12 words: five standard deviations.
    assert row.figures["stays"].value == pytest.approx(stays, abs=5 * math.sqrt(0.25 / 1920))
    assert row.local == pytest.approx(6.0)
    assert row.claim.startswith("ε = 6 per unit of")


def test_words_are_looked_up_as_privatizers_do_and_redrawn_numbers_do_not_stay() -> None:
    space = EmbeddingSpace.from_pretrained("english")
    texts = [f"José García visited China's doctor {k}.5 zxqy" for k in range(1000, 1060)]
    data = Dataset.from_dict({"text": texts})
    found = run(data, space, mechanisms=["krr"], epsilon=40.0, label_column=None)
    plain, row = found.rows
    assert plain.figures["stays"].value == 1.0
    assert row.figures["stays"].value == pytest.approx(5 / 7, abs=0.01)
    assert row.figures["b1"].value > 0.999
    privatizer = DxPrivatizer(space, "krr", 40.0)
    privatizer.privatize(texts)
    assert privatizer.unknown_share == pytest.approx(1 / 7)
    (about,) = (line for line in found.about if line.startswith("b1 and b10"))
    assert "the 5 most frequent words that the space has, 71.4% of running words" in about
    assert about.endswith("14.3% of running words are not in the space")


def test_labels_and_authors_that_are_mixed_up_leave_everything_at_chance(
    euclidean_space: EmbeddingSpace,
) -> None:
    data = labelled(euclidean_space, 240, mixed=True)
    found = run(data, euclidean_space, epsilon=[2.0, 6.0])
    for row in found.rows:
        for name, chance in (
            ("trained", 0.5),
            ("read", 0.5),
            ("author", 1 / AUTHORS),
            ("author_adaptive", 1 / AUTHORS),
        ):
            values = row.samples[name]
            spread = 4.5 * math.sqrt(chance * (1 - chance) / len(values))
            assert abs(row.figures[name].value - chance) < spread, (row.mechanism, name)
    assert "author" not in found.attacks
    assert any("author attack fails on the originals" in note for note in found.notes)
    assert any("learns nothing from the originals" in note for note in found.notes)
    assert found.attacks
    assert not any("gain" in row.figures for row in found.rows)
    assert found.headline.startswith("The classifier learns nothing from the originals: ")


class Codebook:
    """A release that always replaces a word by the same other one: useless against who knows it."""

    name, unit, claim = "codebook", "word", math.inf

    def __init__(self, words: Sequence[str]) -> None:
        order = RNG(1).permutation(len(words))
        self._book = {word: words[k] for word, k in zip(words, order, strict=True)}

    def privatize(self, texts: Sequence[str]) -> list[str]:
        """Replace the words of texts."""
        return [" ".join(self._book[word] for word in text.split()) for text in texts]


def test_an_attacker_who_privatizes_what_he_has_is_stronger_than_one_who_does_not(
    euclidean_space: EmbeddingSpace,
) -> None:
    book = Codebook(euclidean_space.words)
    found = run(labelled(euclidean_space), euclidean_space, mechanisms=[], others=[book])
    row = found.rows[1]
    assert row.figures["author_adaptive"].low > row.figures["author"].high
    assert row.figures["author_adaptive"].value > 0.6
    leaked = found.leaked(row, "author")
    assert leaked == row.figures["author_adaptive"]
    assert (row.claim, row.verified, row.local) == ("none", "not checked", math.inf)


class Halved(TruncatedExponential):
    """Claims half of what it needs."""

    @property
    def certified_epsilon(self) -> float:
        """Return too little."""
        return self.epsilon / 2.0


def test_a_claim_that_is_not_true_is_the_first_thing_said(euclidean_space: EmbeddingSpace) -> None:
    liar = DxPrivatizer(euclidean_space, Halved(euclidean_space, 4.0))
    found = run(labelled(euclidean_space), euclidean_space, others={"liar": liar})
    assert [row.verified for row in found.rows[1:]] == ["exact", "claim not true"]
    assert found.headline.startswith("CLAIM NOT TRUE: liar. ")
    assert "NOT TRUE" in str(found)
    assert 'class="false">NOT TRUE' in found.report()


def test_what_a_program_claims_is_held_to_its_draws(
    euclidean_space: EmbeddingSpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The faults below show in so few: what is looked for in the others takes as long as it may.
    monkeypatch.setattr(frontier, "QUICK", replace(QUICK, draws=15_000, seconds=600.0))
    honest = DxPrivatizer(euclidean_space, "krr", 4.0)
    others = [
        External(honest.privatize, name="honest", claim=4.0),
        # So far off that few releases show it, as a busy machine has time for.
        External(honest.privatize, name="liar", claim=1.0),
        External(str.upper, name="copier", claim=lambda a, b: 1.0),
        External(str.upper, name="modest", claim=math.inf),
        # No number of draws that there is time for could refute it.
        External(honest.privatize, name="vague", claim=300.0),
    ]
    found = run(labelled(euclidean_space), euclidean_space, mechanisms=[], others=others)
    assert [row.verified for row in found.rows[1:]] == [
        *("draws", "claim not true", "claim not true", "not checked", "not checked")
    ]  # fmt: skip
    assert found.headline.startswith("CLAIM NOT TRUE: liar, copier. ")


def test_pools_and_programs_stand_in_the_same_table(euclidean_space: EmbeddingSpace) -> None:
    data = labelled(euclidean_space)
    pool = SentencePool.from_sentences(
        [text for text in texts_by_author(euclidean_space.words, 2, 60, 8, seed=9)[0]],
        euclidean_space, dimensions=4, progress=False,
    )  # fmt: skip
    shout = External(str.upper, name="shout", claim=3.0, unit="text")
    found = run(data, euclidean_space, mechanisms=[], pools=[pool], others=[shout])
    pools, last = found.rows[1:-1], found.rows[-1]
    assert [row.unit for row in pools] == ["text", "text"]
    for row, bound in zip(pools, (10.0, 15.0), strict=True):
        assert row.local is not None
        assert bound - 0.1 < row.local <= bound
        assert row.local_text == row.local
        assert row.verified == "exact"
        assert "stays" not in row.figures
    assert (last.mechanism, last.claim, last.local_text) == (
        "shout", "ε = 3 for any two texts", 3.0
    )  # fmt: skip
    assert last.figures["read"].value == found.rows[0].figures["read"].value


def test_epsilon_is_found_by_the_space_alone(euclidean_space: EmbeddingSpace) -> None:
    size = len(euclidean_space)
    found = matched(euclidean_space, "krr", (0.1, 0.3, 0.5, 0.8), RNG(1))
    wanted = [math.log(p * (size - 1) / (1 - p)) for p in (0.1, 0.3, 0.5, 0.8)]
    # Steps of the grid are of 4 %.
    assert found == pytest.approx(wanted, rel=0.05)
    words = running_words(euclidean_space)
    for target, epsilon in zip(
        (0.3, 0.5), matched(euclidean_space, "tem", (0.3, 0.5), RNG(1)), strict=True
    ):
        law = create_mechanism("tem", euclidean_space, epsilon)
        drawn = law.sample(np.repeat(words, 200), RNG(2)) == np.repeat(words, 200)
        assert drawn.mean() == pytest.approx(target, abs=0.08)


def prepared(rows: dict[str, list[Any]], **columns: str | None) -> Any:
    given = {"label_column": None, "user_column": None} | columns
    limits = {"rows": 100, "words": 10_000, "users": 10}
    return prepare(Dataset.from_dict(rows), "text", **given, **limits, rng=RNG(1))


def test_rows_that_lack_something_are_left_out_with_a_reason() -> None:
    texts = ["a b", "", None, "  ", "c d"] * 8
    labels = ["x", "x", "y", "y", None] * 4 + ["y", "x", "x", "y", "x"] * 4
    found = prepared({"text": texts, "label": labels}, label_column="label")
    assert len(found.texts) == 16
    assert found.labels == ("x", "y")
    notes = " / ".join(found.notes)
    assert "24 rows without text left out" in notes
    assert "4 rows without a label left out" in notes
    assert "only 16 rows: mind the intervals" in notes
    assert (found.classes == -1).sum() == 4


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (["x"] * 40, "two classes or more are needed, the sample has 1"),
        ([None] * 40, "two classes or more are needed, the sample has 0"),
        ([float(k) for k in range(40)], "40 different values in 40 rows; expected classes"),
        (["x"] * 39 + ["y"], "1 row left out of the accuracy whose class has no other row"),
    ],
)
def test_labels_that_are_no_classes_leave_out_the_accuracy(labels: list[Any], reason: str) -> None:
    rows = {"text": [f"w{k}" for k in range(40)], "label": labels}
    found = prepared(rows, label_column="label")
    assert found.labels == ()
    assert reason in " / ".join(found.notes)


def test_one_class_is_the_first_thing_said(euclidean_space: EmbeddingSpace) -> None:
    data = labelled(euclidean_space, 20).select_columns(["text"])
    found = run(data.add_column("label", ["x"] * 20), euclidean_space)
    assert found.headline.startswith(
        "No accuracy: two classes or more are needed, the sample has 1. "
    )
    assert "trained" not in found.table()[0]


def test_users_with_few_texts_leave_out_the_attack_and_nobody_is_on_both_sides() -> None:
    texts = [f"w{k}" for k in range(40)]
    alone = prepared({"text": texts, "user": list(range(40))}, user_column="user")
    assert len(alone.asked) == 0
    assert "it needs two users with 4 texts each, there are 0 of 40" in " / ".join(alone.notes)
    found = prepared({"text": texts, "user": [k % 5 for k in range(40)]}, user_column="user")
    assert len(found.asked) == len(found.known) == 20
    assert not set(found.asked.tolist()) & set(found.known.tolist())


def test_a_large_dataset_is_sampled_by_rows_and_by_words() -> None:
    rows = {"text": ["one two three four"] * 1000}
    found = prepare(
        Dataset.from_dict(rows), "text", None, None, rows=300, words=10_000, users=5, rng=RNG(1)
    )
    assert len(found.texts) == 300
    few = prepare(
        Dataset.from_dict(rows), "text", None, None, rows=300, words=80, users=5, rng=RNG(1)
    )
    assert len(few.texts) == 20
    assert "a random sample of 20 of 1,000 rows" in " / ".join(few.notes)


def test_bad_input_is_refused_and_no_text_is_quoted(euclidean_space: EmbeddingSpace) -> None:
    data = Dataset.from_dict({"text": ["secret words"], "n": [0]})
    with pytest.raises(InvalidValueError, match=r"no column 'texts'.*did you mean 'text'"):
        compare(data, text_column="texts", space=euclidean_space)
    with pytest.raises(InvalidTypeError, match="expected texts in column 'n', got an int"):
        compare(data, text_column="n", space=euclidean_space)
    with pytest.raises(InvalidTypeError, match="name one of its splits"):
        compare(DatasetDict({"train": data}), space=euclidean_space)  # type: ignore[arg-type]
    with pytest.raises(InvalidValueError, match="has no text in 2 rows"):
        compare(Dataset.from_dict({"text": ["", None]}), space=euclidean_space)
    with pytest.raises(InvalidTypeError, match="a method privatize"):
        run(data, euclidean_space, others=[len])
    with pytest.raises(InvalidValueError, match="return a text for each of 1 texts") as error:
        run(data, euclidean_space, others={"short": type("Short", (), {"privatize": _nothing})()})
    assert "secret" not in str(error.value)
    with pytest.raises(InvalidValueError, match="releases >= 1"):
        compare(data, space=euclidean_space, releases=0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"epsilon": {"hierachical": 1.5}}, InvalidValueError, "did you mean 'hierarchical'"),
        ({"epsilon": {"tem": 3.0}}, InvalidValueError, r"krr\), got 'tem'; name it"),
        ({"epsilon": [8.0, None]}, InvalidTypeError, "epsilon to be a number, got epsilon=None"),
        ({"mechanisms": [], "epsilon": None}, InvalidValueError, "expected one candidate or more"),
        ({"mechanisms": "krr"}, InvalidTypeError, r"got a str; pass \['krr'\]"),
        ({"mechanisms": ["krr", "krr"]}, InvalidValueError, "got 'krr' twice; name each"),
        ({"others": {"krr": len}}, InvalidValueError, "got 'krr' twice; name each"),
        ({"others": {"none": len}}, InvalidValueError, "from 'none', got 'none' twice"),
        ({"epsilon": []}, InvalidValueError, "expected epsilons to try, got none"),
    ],
)
def test_a_wrong_choice_of_candidates_is_refused(
    euclidean_space: EmbeddingSpace, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    data = Dataset.from_dict({"text": euclidean_space.words[:8]})
    with pytest.raises(error, match=message):
        run(data, euclidean_space, **{"mechanisms": ["hierarchical", "krr"], **options})


def test_one_candidate_is_said_once_and_one_without_an_attack_is_shown(
    euclidean_space: EmbeddingSpace,
) -> None:
    data = Dataset.from_dict({"text": [" ".join(euclidean_space.words[:8])] * 8})
    alone = run(data, euclidean_space)
    assert len(alone.attacks) > 1
    assert str(alone).count("There are no two mechanisms to compare.") == 1
    assert alone.report().count("There are no two mechanisms to compare.") == 1
    shown = run(data, euclidean_space, mechanisms=[], epsilon=None, others=[Counting("copier")])
    assert shown.attacks == ()
    assert str(shown).startswith("There are no two mechanisms to compare.")
    assert "copier" in shown.report()
    for look in (shown.figure, lambda: shown.difference("copier", "krr")):
        with pytest.raises(InvalidValueError, match="no attack was measured; name a user column"):
            look()


def test_an_adversary_who_learns_the_law_from_draws_is_a_lower_bound(
    euclidean_space: EmbeddingSpace,
) -> None:
    data = labelled(euclidean_space, 60).select_columns(["text", "label"])
    epsilons = {"laplace": [5.0, 20.0], "krr": [2.0, 6.0]}
    found = run(
        data, euclidean_space, mechanisms=["laplace", "krr"], epsilon=epsilons, label_column="label"
    )
    bounds = {row.mechanism for row in found.rows if row.is_lower_bound("b1")}
    assert bounds == {"laplace"}
    with pytest.raises(InvalidValueError, match="expected first to be one of 'krr'"):
        found.difference("laplace", "krr", "b1")
    assert "b1 and b10 of laplace are lower bounds" in " ".join(found.notes)
    assert "≥ 0." in str(found)


def _nothing(self: object, texts: Sequence[str]) -> list[str]:
    return []


def test_a_rare_class_does_not_leave_fewer_parts(euclidean_space: EmbeddingSpace) -> None:
    # With two parts the interval of their difference would span everything.
    data = labelled(euclidean_space)
    rare = data.remove_columns("label").add_column(
        "label", ["c"] + [str(k % 2) for k in range(159)]
    )
    assert set(run(rare, euclidean_space).parts) == {0, 1, 2, 3, 4}


def test_twenty_rows_without_label_or_user_still_compare(euclidean_space: EmbeddingSpace) -> None:
    data = labelled(euclidean_space, 20).select_columns(["text"])
    epsilons = {"tem": [1.0, 2.0, 3.0], "krr": [5.0, 6.0, 7.0]}
    found = run(data, euclidean_space, mechanisms=["tem", "krr"], epsilon=epsilons)
    assert found.utility == "kept"
    assert found.attacks == ("b1", "local")
    assert "words the same or near" in found.headline
    notes = " / ".join(found.notes)
    assert "no label column" in notes
    assert "no user column" in notes


class Counting:
    """Releases texts as they are, counts, and is interrupted once."""

    unit, claim = "word", math.inf

    def __init__(self, name: str, interrupt: bool = False) -> None:
        self.name, self.calls, self._interrupt = name, 0, interrupt

    def privatize(self, texts: Sequence[str]) -> list[str]:
        """Return the texts."""
        if self._interrupt:
            self._interrupt = False
            raise KeyboardInterrupt("stopped")
        self.calls += 1
        return list(texts)


def test_an_interrupted_comparison_goes_on_where_it_was(
    euclidean_space: EmbeddingSpace, tmp_path: Path
) -> None:
    data, folder = labelled(euclidean_space), tmp_path / "kept"
    done, stopped = Counting("done"), Counting("stopped", interrupt=True)
    options: dict[str, Any] = {"others": [done, stopped], "resume": folder, "seed": None}
    with pytest.raises(KeyboardInterrupt, match="stopped"):
        run(data, euclidean_space, **options)
    first = run(data, euclidean_space, **options)
    assert (done.calls, stopped.calls) == (1, 1)
    again = run(data, euclidean_space, **options)
    assert (done.calls, stopped.calls) == (1, 1)
    assert again.to_json() == first.to_json()
    assert again.sentences == first.sentences
    with pytest.raises(InvalidValueError, match="other data"):
        run(data.select(range(100)), euclidean_space, **options)
    victim = next(folder.glob("row-*.json"))
    victim.write_text(victim.read_text("utf-8")[:-20], encoding="utf-8")
    with pytest.raises(ArtifactError, match="damaged; delete it"):
        run(data, euclidean_space, **options)


def test_candidates_that_differ_have_rows_of_their_own(euclidean_space: EmbeddingSpace) -> None:
    words = sorted(euclidean_space.words)[:8]
    sentences = [" ".join(np.roll(words, k)[:4]) for k in range(8)]
    pool = SentencePool.from_sentences(sentences, euclidean_space, progress=False)
    made = [
        DxPrivatizer(euclidean_space, "krr", 3.0),
        DxPrivatizer(euclidean_space, "krr", 3.0, stopwords=words[:2]),
        DxPrivatizer(euclidean_space, "krr", 3.0, stopwords=words[2:4]),
        SlotPrivatizer(euclidean_space, "krr", 3.0, selector=ContentWordSelector(words[:2])),
        SlotPrivatizer(euclidean_space, "krr", 3.0, selector=ContentWordSelector(words[2:4])),
        SentencePrivatizer(pool, epsilon=3.0),
        SentencePrivatizer(pool, epsilon=3.0, refill=True),
        SentencePrivatizer(replace(pool, offset=pool.offset + 1), epsilon=3.0),
        External(["worker"], name="peer", claim=8.0),
        External(["worker"], name="peer", claim=2.0),
        External(["worker", "--fast"], name="peer", claim=2.0),
    ]
    assert len({Candidate("one", 3.0, each).identity for each in made}) == len(made)


def test_a_seed_makes_everything_the_same_and_releases_narrow_nothing_away(
    euclidean_space: EmbeddingSpace,
) -> None:
    data = labelled(euclidean_space)
    one, same = (run(data, euclidean_space, releases=2) for _ in range(2))
    other = run(data, euclidean_space, releases=2, seed=8)
    assert one.to_json() == same.to_json() != other.to_json()
    hits = one.rows[1].samples["read"]
    assert set(np.unique(hits)) <= {0.0, 0.5, 1.0}
    assert 0.5 in hits


def test_tables_files_and_page_hold_the_same_and_nothing_of_single_texts(
    found: Comparison, euclidean_space: EmbeddingSpace
) -> None:
    printed = str(found)
    table = [line for line in printed.splitlines() if line.startswith(("mechanism", "tem", "krr"))]
    assert len(table) == 7
    assert len({len(line) for line in table}) == 1
    assert max(map(len, table)) <= 120
    assert printed.splitlines()[0] == found.headline
    page = found.to_markdown()
    assert found.headline in page
    assert len({line.count("|") for line in page.splitlines() if line.startswith("|")}) == 1
    content = json.loads(found.to_json())
    assert content["headline"] == found.headline
    assert len(content["rows"]) == 7
    assert "samples" not in found.to_json()
    rows = found.to_dataset()
    assert rows["trained"][1] == found.rows[1].figures["trained"].value
    assert rows["trained_low"][1] < rows["trained"][1] < rows["trained_high"][1]
    html = found.report()
    assert found.headline in html.replace("&#39;", "'")
    assert "For the owner of the texts only" in html
    assert "http" not in html.partition("<body>")[2].replace("http://www.w3.org", "")
    for words in (printed, page, html, found.to_json()):
        assert euclidean_space.words[0] + " " not in words


def test_names_in_the_page_are_escaped(euclidean_space: EmbeddingSpace) -> None:
    other = Counting("<script>alert(1)</script>")
    html = run(labelled(euclidean_space), euclidean_space, others=[other]).report()
    assert "<script" not in html
    assert "&lt;script&gt;" in html


def test_figures_are_drawn_for_each_attack(found: Comparison) -> None:
    assert found.attacks == ("author", "b1", "local")
    for attack in found.attacks:
        picture = found.figure(attack)
        assert {"tem", "krr", "original"} <= {
            text.get_text() for text in picture.figure.legends[0].get_texts()
        }
    with pytest.raises(InvalidValueError, match="expected attack to be one of 'author'"):
        found.figure("none")
    shown = found.difference("tem", "krr", "b1")
    assert shown is not None
    assert shown.first == "tem"
    with pytest.raises(InvalidValueError, match="expected first to be one of 'tem', 'krr'"):
        found.difference("laplace", "krr")
