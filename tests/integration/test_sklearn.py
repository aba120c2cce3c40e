"""The transformer in pipelines of scikit-learn: forms of texts, clones, validation, noise."""

import pickle
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.stats import binom
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.utils import estimator_checks

from hf_dxprivacy import DxPrivacyError, DxPrivatizer, EmbeddingSpace, PrivacyBudget
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.integrations.sklearn import DxTransformer

# Of the test of noise: how often it fails by chance.
FALSE_ALARM = 1e-6
TEXTS = ["waaa, waab!", "", "waac — xylographer"]


@pytest.fixture
def transformer(euclidean_space: EmbeddingSpace) -> DxTransformer:
    return DxTransformer(euclidean_space, "krr", 3.0)


def is_release(texts: Any, space: EmbeddingSpace) -> bool:
    """Tell whether these may be a release of `TEXTS`."""
    first, empty, last = texts
    words = [*first.replace(",", "").strip("!").split(), *last.replace(" — ", " ").split()]
    return empty == "" and len(words) == 4 and all(word in space for word in words)


@pytest.mark.parametrize(
    "given",
    [
        TEXTS,
        tuple(TEXTS),
        np.array(TEXTS),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS, index=[3, 1, 2]),
        pd.Series(TEXTS, dtype="string"),
        pd.Series(TEXTS).astype("category"),
        pl.Series(TEXTS),
    ],
    ids=lambda given: f"{type(given).__module__}-{getattr(given, 'dtype', '')}",
)
def test_one_dimension_stays_one(given: Any, transformer: DxTransformer) -> None:
    released = transformer.fit_transform(given)
    assert isinstance(released, np.ndarray)
    assert (released.shape, released.dtype) == ((3,), object)
    assert all(type(each) is str for each in released)
    assert is_release(released, transformer.space)


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"review": TEXTS}),
        pl.DataFrame({"review": TEXTS}),
        np.array(TEXTS)[:, None],
        [[text] for text in TEXTS],
    ],
    ids=["pandas", "polars", "numpy", "lists"],
)
def test_one_column_stays_one(given: Any, transformer: DxTransformer) -> None:
    released = transformer.fit_transform(given)
    assert released.shape == (3, 1)
    assert is_release(released[:, 0], transformer.space)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_missing_texts_stay_missing(missing: Any, transformer: DxTransformer) -> None:
    released = transformer.transform(pd.Series(["waaa", missing], dtype=object))
    assert released[0] in transformer.space
    assert released[1] is None
    assert transformer.transform([]).shape == (0,)


@pytest.mark.parametrize("shape", [(3, 2), (3, 0), (3, 1, 2), ()])
def test_other_shapes_are_refused(shape: tuple[int, ...], transformer: DxTransformer) -> None:
    texts = np.full(shape, "waaa", dtype=object)
    for call in (transformer.fit, transformer.transform):
        with pytest.raises(InvalidValueError, match=r"shape \(n,\) or \(n, 1\), got \(.*Column"):
            call(texts)


@pytest.mark.parametrize("cell", [5, 2.5, b"xylographer", {"xylographer": 1}])
def test_what_is_no_text_is_refused_unseen(cell: Any, transformer: DxTransformer) -> None:
    with pytest.raises(InvalidTypeError, match=r"row 1.*expected a text") as caught:
        transformer.transform(["xylographer", cell])
    assert "xylographer" not in str(caught.value)


def test_data_frames_come_out_with_their_index_and_name(transformer: DxTransformer) -> None:
    transformer.set_output(transform="pandas")
    frame = pd.DataFrame({"review": TEXTS}, index=[3, 1, 2])
    released = transformer.fit_transform(frame)
    assert isinstance(released, pd.DataFrame)
    assert (released.index.tolist(), [*released.columns]) == ([3, 1, 2], ["review"])
    assert is_release(released["review"], transformer.space)
    assert transformer.get_feature_names_out().tolist() == ["review"]
    series = transformer.fit_transform(frame["review"])
    assert (series.index.tolist(), [*series.columns]) == ([3, 1, 2], ["review"])
    unfitted = clone(transformer).set_output(transform="pandas")
    assert [*unfitted.transform(TEXTS).columns] == ["text"]
    assert transformer.set_output(transform="polars").transform(frame).columns == ["review"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_a_column_of_another_name_than_fitted_is_refused(
    frame: Any, transformer: DxTransformer
) -> None:
    transformer.fit(frame({"review": TEXTS}))
    with pytest.raises(
        ValueError, match="names should match those that were passed during fit"
    ) as e:
        transformer.transform(frame({"xylographer": TEXTS}))
    assert isinstance(e.value, InvalidValueError)
    assert "xylographer" not in str(e.value)
    assert is_release(transformer.transform(TEXTS), transformer.space)
    # As in scikit-learn, what was fitted without a name takes any.
    transformer.fit(TEXTS)
    assert not hasattr(transformer, "feature_names_in_")
    assert is_release(transformer.transform(frame({"name": TEXTS}))[:, 0], transformer.space)


def test_a_clone_has_the_parameters_and_no_more(transformer: DxTransformer) -> None:
    space = transformer.space
    copied = clone(transformer.fit(TEXTS))
    assert copied.get_params() == {
        "space": space,
        "mechanism": "krr",
        "epsilon": 3.0,
        "privatizer": None,
    }
    assert set(vars(copied)) == set(copied.get_params())
    given = clone(DxTransformer(privatizer=DxPrivatizer(space, "krr", 3.0, oov="drop")))
    assert given.transform(["xylographer waaa"])[0].strip() in space


def test_what_is_set_after_fit_holds(transformer: DxTransformer) -> None:
    assert transformer.fit(TEXTS).guarantee.epsilon == pytest.approx(3.0)
    transformer.set_params(epsilon=1e-9)
    assert transformer.guarantee.epsilon == pytest.approx(1e-9)
    # At 1e-9 each of 501 inputs is as likely as any other; at 3 one in 26 stays.
    stay = (transformer.transform(["waaa"] * 2000) == "waaa").sum()
    assert stay <= binom.ppf(1 - FALSE_ALARM, 2000, 1 / 500)
    transformer.set_params(epsilon=20.0)
    assert (transformer.transform(["waaa"] * 2000) == "waaa").sum() > 1900
    travelled = pickle.loads(pickle.dumps(transformer.fit(TEXTS)))
    assert travelled._current() is travelled._made[1]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"space": "wordnet-gloss", "epsilon": 1.0}, "mechanism is missing"),
        ({"space": "wordnet-gloss", "mechanism": "krr"}, "epsilon is missing"),
        ({"mechanism": "krr", "epsilon": -1.0}, r"epsilon > 0 and finite, got epsilon=-1\.0"),
        ({"mechanism": "krrr", "epsilon": 1.0}, "did you mean 'krr'"),
        ({"space": "engish", "mechanism": "krr", "epsilon": 1.0}, "engish"),
        ({"privatizer": "english"}, "to be a DxPrivatizer.*got a str"),
    ],
)
def test_a_parameter_that_is_wrong_is_named_by_fit(parameters: Any, message: str) -> None:
    with pytest.raises(DxPrivacyError, match=message):
        DxTransformer(**parameters).fit(TEXTS)


def test_a_privatizer_brings_its_own_epsilon(euclidean_space: EmbeddingSpace) -> None:
    privatizer = DxPrivatizer(euclidean_space, "krr", 3.0)
    with pytest.raises(InvalidValueError, match="leave mechanism= and epsilon= out"):
        DxTransformer(epsilon=1.0, privatizer=privatizer).fit(TEXTS)
    assert DxTransformer(privatizer=privatizer).guarantee == privatizer.guarantee


def reviews(count: int) -> tuple[list[str], list[int]]:
    labels = [number % 2 for number in range(count)]
    return [f"waa{'ab'[label]} waac" for label in labels], labels


def counted(transformer: DxTransformer, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that grows by every text that is released."""
    seen: list[str] = []
    release = DxPrivatizer.privatize

    def privatize(self: DxPrivatizer, texts: Any) -> Any:
        seen.extend(texts)
        return release(self, texts)

    monkeypatch.setattr(DxPrivatizer, "privatize", privatize)
    return seen


def test_validation_releases_each_text_once_for_each_fold(
    transformer: DxTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    transformer.set_params(epsilon=12.0)
    texts, labels = reviews(60)
    seen = counted(transformer, monkeypatch)
    pipeline = make_pipeline(transformer, TfidfVectorizer(), LogisticRegression())
    scores = cross_val_score(pipeline, texts, labels, cv=5, error_score="raise")
    assert len(seen) == 5 * 60
    assert scores.mean() > 0.8
    del seen[:]
    search = GridSearchCV(pipeline, {"dxtransformer__epsilon": [6.0, 12.0]}, cv=3, refit=False)
    search.fit(texts, labels)
    assert len(seen) == 2 * 3 * 60
    del seen[:]
    released = transformer.fit_transform(texts)
    pipeline = make_pipeline(TfidfVectorizer(), LogisticRegression())
    assert cross_val_score(pipeline, released, labels, cv=5, error_score="raise").mean() > 0.8
    assert len(seen) == 60


def test_every_call_draws_anew(transformer: DxTransformer) -> None:
    words, texts = 4000, ["waaa"] * 4000
    transformer.fit(texts)
    first, second = transformer.transform(texts), transformer.transform(texts)
    law = transformer._made[1].mechanism.probabilities(np.array([0]))[0]
    quantiles = [FALSE_ALARM / 2, 1 - FALSE_ALARM / 2]
    low, high = binom.ppf(quantiles, words, float(law @ law))
    assert low <= (first == second).sum() <= high
    low, high = binom.ppf(quantiles, words, law[0])
    assert low <= (first == "waaa").sum() <= high


def test_a_budget_is_not_multiplied_by_clones(euclidean_space: EmbeddingSpace) -> None:
    texts, labels = reviews(20)
    privatizer = DxPrivatizer(euclidean_space, "krr", 3.0, budget=PrivacyBudget(3.0))
    transformer = DxTransformer(privatizer=privatizer)
    pipeline = make_pipeline(transformer, TfidfVectorizer(), LogisticRegression())
    with pytest.raises(DxPrivacyError, match="counts only where it was made"):
        cross_val_score(pipeline, texts, labels, cv=2, error_score="raise")
    assert len(transformer.transform(texts)) == 20
    with pytest.raises(DxPrivacyError, match="budget"):
        transformer.transform(texts)


def test_columns_of_a_table_have_their_own_transformers(transformer: DxTransformer) -> None:
    table = pd.DataFrame({"title": TEXTS, "body": TEXTS, "stars": [1, 2, 3]})
    both = [("title", transformer, ["title"]), ("body", clone(transformer), ["body"])]
    steps = ColumnTransformer(both, remainder="passthrough", verbose_feature_names_out=False)
    released = Pipeline([("release", steps)]).set_output(transform="pandas").fit_transform(table)
    assert [*released.columns] == ["title", "body", "stars"]
    assert released["stars"].tolist() == [1, 2, 3]
    assert is_release(released["title"], transformer.space)
    assert is_release(released["body"], transformer.space)


# Those of `check_estimator` that hand over numbers have no place here; scikit-learn leaves out
# all but one where an estimator says that it wants strings.
@pytest.mark.parametrize(
    "check",
    [
        "check_do_not_raise_errors_in_init_or_set_params",
        "check_estimator_cloneable",
        "check_estimator_repr",
        "check_estimator_tags_renamed",
        "check_estimators_fit_returns_self",
        "check_estimators_overwrite_params",
        "check_mixin_order",
        "check_n_features_in_after_fitting",
        "check_no_attributes_set_in_init",
        "check_parameters_default_constructible",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_set_params",
        "check_get_params_invariance",
        "check_valid_tag_types",
    ],
)
def test_the_rules_for_estimators_hold(check: str, transformer: DxTransformer) -> None:
    if (rule := getattr(estimator_checks, check, None)) is None:
        pytest.skip("not in this version of scikit-learn")
    rule("DxTransformer", transformer)


def test_the_checks_of_scikit_learn_pass(transformer: DxTransformer) -> None:
    with pytest.warns(estimator_checks.SkipTestWarning, match="requires input"):
        estimator_checks.check_estimator(transformer)
