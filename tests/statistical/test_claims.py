"""False claims of releases by anybody are flagged, and true ones are not, at a stated rate."""

import json
import math
from typing import Any

import datasets
import pytest

from claims import (
    FALSE,
    NEXT_ROW,
    TEXTS,
    TRUE,
    WORDS,
    HalfClaimed,
    KeepsLetters,
    LanguageModel,
    Leaks,
    NextRow,
    Understates,
    beside,
    compared,
    response,
    tree,
    tree_space,
    verified,
)
from faulty_mechanisms import clusters
from hf_dxprivacy import DxPrivatizer
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.evaluation import External
from hf_dxprivacy.randomness import keyed_generator
from hf_dxprivacy.verify import release_claims, verify_claim, verify_guarantee

# At most this share of true claims would be flagged, over all seeds.
ALPHA = 1e-6


@pytest.fixture(autouse=True)
def _no_progress_bars() -> None:
    datasets.disable_progress_bars()


@pytest.mark.parametrize("name", FALSE)
def test_false_claim_is_flagged(name: str) -> None:
    found = verified(FALSE[name], seed=1, runs=80_000)
    assert not found.holds
    assert FALSE[name].flagged in found.reason
    assert str(found).startswith("CLAIM NOT TRUE")
    json.dumps(found.to_dict())


@pytest.mark.parametrize("name", TRUE)
def test_true_claim_holds(name: str) -> None:
    workers = 2 if name in ("krr", "clipped logits") else 0
    found = verified(TRUE[name], seed=2, runs=40_000, false_alarm=ALPHA, workers=workers)
    assert found.holds
    assert found.evidence
    assert all(check.passed for check in found.evidence)
    assert found.reason.startswith("nothing above what is claimed in 40,000 releases")
    assert found.noise is not None
    assert found.noise.workers == workers


@pytest.mark.parametrize("unit", ["word", "text"])
def test_true_claim_holds_whatever_the_seed(unit: str) -> None:
    """200 runs at a rate at which twenty would be flagged if the rate were all there is."""
    release = TRUE["krr" if unit == "word" else "clipped logits"]
    flagged = [s for s in range(200) if not verified(release, s, runs=1_000, false_alarm=0.1).holds]
    # Twenty and five standard deviations.
    assert len(flagged) <= 41


@pytest.mark.parametrize("name", NEXT_ROW)
def test_originals_in_other_rows_show_beside_others_and_in_a_comparison(name: str) -> None:
    make, claim = NEXT_ROW[name]
    assert beside(make(), 1, draws=20_000) is (claim == "true")
    assert compared(make(), 1, quick=True) is (claim == "true")


def test_an_original_of_an_earlier_call_shows() -> None:
    class NextCall(NextRow):
        kept: tuple[str, ...] = ()

        def privatize(self, texts: list[str]) -> list[str]:
            released = self.honest.privatize(texts)
            if self.kept:
                released[0] = self.kept[0]
            self.kept = tuple(texts)
            return released

    found = verify_claim(NextCall(tree()), inputs=WORDS, workers=0, rng=keyed_generator(9))
    assert not found.holds
    assert found.reason.startswith("unknown words come out as they are, 1 of 20,000")


@pytest.mark.parametrize(
    ("letters", "claim", "runs"), [(12, 8.0, 1_000), (12, 14.6, 2_000), (8, 1.0, 2_000)]
)
def test_few_letters_of_unknown_words_show_in_few_runs(
    letters: int, claim: float, runs: int
) -> None:
    found = verify_claim(
        KeepsLetters(tree(), letters), claim, WORDS, runs=runs, workers=0, rng=keyed_generator(10)
    )
    assert not found.holds
    assert "letters of unknown words come out" in found.reason


def test_runs_of_letters_that_come_by_chance_refute_nothing() -> None:
    """Releases that are random letters themselves, 20 times at a rate of 0.1."""
    rng = keyed_generator(11)

    def random_letters(text: str) -> str:
        return "".join(map(chr, rng.integers(97, 123, 400)))

    for seed in range(20):
        audit = release_claims._Audit(
            lambda texts: [*map(random_letters, texts)],
            lambda a, b: 0.0,
            ["a", "b"],
            0.1,
            keyed_generator(12, seed),
        )
        assert audit.made_up_words(200, "word") == ""


def test_a_claim_of_nothing_does_not_hold() -> None:
    for bound in (math.inf, lambda a, b: math.inf):
        with pytest.raises(InvalidValueError, match="nothing is claimed: the bound is ∞ for any"):
            verify_claim(response(1.0), bound, WORDS, runs=1_000, workers=0)


def test_words_at_distance_zero_are_among_the_inputs() -> None:
    words = [*(f"known{k}" for k in range(38)), "same", "equal"]

    def claim(a: str, b: str) -> float:
        return 0.0 if {a, b} == {"same", "equal"} else 20.0

    chosen = release_claims._inputs_of(None, words, claim, 8, keyed_generator(13))
    assert {"same", "equal"} <= {*chosen}
    assert len(chosen) <= 8


def test_it_is_said_what_was_not_checked() -> None:
    found = verified(TRUE["hierarchical"], 1, runs=1_000)
    assert found.not_checked[0] == "noise that processes share (workers=0)"
    assert "its mechanism, which verify_guarantee(privatizer.mechanism) checks" in str(found)
    assert found.to_dict()["not_checked"] == found.not_checked
    # One that splits no texts.
    shouts = verify_claim(lambda text: text[:1], 99.0, WORDS, runs=1_000, workers=0)
    assert "noise that words of one text share" in shouts.not_checked


def test_numbers_that_a_privatizer_prints_are_held_to_its_bounds() -> None:
    bound = tree().guarantee.bound
    near = min(WORDS[1:], key=lambda word: bound(WORDS[0], word))
    for words in ([*WORDS[:6], near], [f"{WORDS[0]}, w2!", f"{near}, w2!"]):
        found = verify_guarantee(
            Understates(tree_space(), "hierarchical", 1.5), words, draws=20_000, alpha=ALPHA
        )
        assert not found.passed
        assert found.false_statements[0].startswith("guarantee.ldp_epsilon is 0.01, but ε·d")
        assert "guarantee.neighbour_epsilon[1]" in found.false_statements[1]
        honest = verify_guarantee(tree(), words, draws=20_000, alpha=ALPHA)
        assert honest.passed
        assert honest.not_checked[0].startswith("its mechanism, which")
        assert "not checked: its mechanism" in str(honest)


def test_leak_of_known_words_shows_where_few_words_stay() -> None:
    class LeaksKnown(Leaks):
        def privatize(self, texts: list[str]) -> list[str]:
            known = self.honest.space.ids(texts) >= 0
            released = super().privatize(texts)
            honest = self.honest.privatize(texts)
            return [str(a if k else b) for a, b, k in zip(released, honest, known, strict=True)]

    def check(share: float) -> Any:
        return verify_claim(
            LeaksKnown(response(0.1), share),
            inputs=WORDS,
            runs=100_000,
            false_alarm=ALPHA,
            workers=0,
            rng=keyed_generator(3),
        )

    assert check(share=0.0).holds
    found = check(share=1e-2)
    assert not found.holds
    assert "inputs come out as they are" in found.reason


def test_a_copied_word_refutes_large_claims_but_not_any() -> None:
    def check(claim: float, text: bool) -> Any:
        return verify_claim(
            str.upper if text else External(str.lower, name="copies", claim=claim),
            claim if text else None,
            TEXTS if text else WORDS,
            unit="text" if text else None,
            runs=1_000,
            workers=0,
            rng=keyed_generator(4),
        )

    for text in (False, True):
        found = check(30.0, text)
        assert not found.holds
        assert found.reason.startswith("unknown words come out as they are, 100 of 100")
        found = check(300.0, text)
        assert found.holds
        assert str(found).startswith(
            "not tested, no gross fault found: "
            "no two inputs have a claim that so many draws could refute"
        )


def test_it_is_said_that_unknown_words_are_not_covered() -> None:
    keeps = DxPrivatizer(clusters(), "krr", 1.0, oov="keep")
    found = verify_claim(keeps, inputs=WORDS, runs=4_000, workers=0, rng=keyed_generator(6))
    assert found.holds
    assert found.reason.endswith("; nothing is claimed of unknown words")

    def known(a: str, b: str) -> float:
        return 1.0 if {a, b} <= {*WORDS} else [][0]

    found = verify_claim(keeps, known, WORDS, runs=4_000, workers=0, rng=keyed_generator(7))
    assert found.reason.endswith("; nothing is claimed of unknown words")


def test_reasons_hold_nothing_of_the_inputs() -> None:
    for release in (HalfClaimed(tree()), LanguageModel(clipped=False)):
        inputs = TEXTS if isinstance(release, LanguageModel) else WORDS
        found = verify_claim(release, inputs=inputs, runs=60_000, workers=0, rng=keyed_generator(5))
        assert not found.holds
        assert not any(text in str(found) for text in inputs)


def test_users_share_of_unknown_words_is_not_counted() -> None:
    privatizer = tree()
    verify_claim(privatizer, runs=1_000, workers=0)
    assert privatizer.unknown_share is None


@pytest.mark.parametrize(
    ("arguments", "options", "error", "message"),
    [
        ((str.upper, None, WORDS), {}, InvalidTypeError, "expected bound= with what is claimed"),
        ((str.upper, 1.0), {}, InvalidTypeError, "expected inputs= with words or texts"),
        ((str.upper, 1.0, "word"), {}, InvalidTypeError, "inputs to be a sequence of strings"),
        ((str.upper, 1.0, ["a", "a"]), {}, InvalidValueError, "two different inputs, got 1"),
        ((str.upper, 1.0, ["a b", "a"]), {}, InvalidValueError, 'pass unit="text"'),
        ((str.upper, 1.0, WORDS), {"runs": 10}, InvalidValueError, "runs >= 1000"),
        ((str.upper, 1.0, WORDS), {"false_alarm": 0.0}, InvalidValueError, "false_alarm"),
        ((str.upper, 1.0, WORDS), {"unit": "row"}, InvalidValueError, "unit to be one of"),
        ((3, 1.0, WORDS), {}, InvalidTypeError, "a function of a text, got a int"),
        ((lambda text: None, 1.0, WORDS), {}, InvalidTypeError, "return a string for each text"),
    ],
)
def test_arguments_are_checked(
    arguments: tuple[Any, ...], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        verify_claim(*arguments, **options)
