"""Transformer for pipelines of scikit-learn."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import InvalidValueError
from hf_dxprivacy.guarantee import PrivacyGuarantee
from hf_dxprivacy.integrations import require_texts_privatizer
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer

require("sklearn", "audit")
from sklearn.base import BaseEstimator, TransformerMixin  # noqa: E402

if TYPE_CHECKING:
    from pathlib import Path

    from hf_dxprivacy.files.job import TextsPrivatizer
    from hf_dxprivacy.spaces import EmbeddingSpace


class DxTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Transformer from texts to released texts; it learns nothing from them.

    EVERY call of `transform` draws again and is one more release, whose bounds add up with those of
    the others: ``cross_val_score(pipeline, cv=5)`` releases every text five times, a search over
    ten candidates fifty. Release once, before, and validate on what was released:

    >>> released = DxTransformer("english", "hierarchical", 1.5).fit_transform(texts)
    >>> cross_val_score(make_pipeline(TfidfVectorizer(), LogisticRegression()), released, labels)

    Args:
        space: As for `DxPrivatizer`.
        mechanism: Its name; no default.
        epsilon: ε > 0, per unit of the mechanism's metric; no default.
        privatizer: Instead of all these, a `DxPrivatizer`, `SlotPrivatizer` or
            `SentencePrivatizer`, whose columns do not matter here. A clone is a copy, in which a
            `PrivacyBudget` refuses every release.

    Raises:
        MissingExtraError: When this module is imported, if scikit-learn is not installed.
    """

    def __init__(
        self,
        space: "EmbeddingSpace | str | Path" = "english",
        mechanism: str | None = None,
        epsilon: float | None = None,
        privatizer: "TextsPrivatizer | None" = None,
    ) -> None:
        # scikit-learn clones by these attributes, and checks nothing before `fit`.
        self.space = space
        self.mechanism = mechanism
        self.epsilon = epsilon
        self.privatizer = privatizer

    def fit(self, X: Any, y: Any = None) -> "DxTransformer":  # noqa: N803
        """Check the parameters and the form of the texts.

        Raises:
            InvalidTypeError: If a parameter is of the wrong type.
            InvalidValueError: If it is out of range or unknown, or there are several columns.
        """
        _require_one_column(X)
        names = [str(n) for n in getattr(X, "columns", [getattr(X, "name", None)]) if n is not None]
        self.n_features_in_ = 1
        if names:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        self._made = self._asked(), self._make()
        return self

    def transform(self, X: Any) -> NDArray[np.object_]:  # noqa: N803
        """Release the texts once more.

        Args:
            X: (n,) texts as a list, an array or a Series, or (n, 1) as a data frame or an array.
                A missing one stays missing.

        Returns:
            Array of the same shape, of strings; a data frame after ``set_output``.

        Raises:
            InvalidTypeError: If a cell is no text.
            InvalidValueError: If there are several columns, or one of another name than in `fit`.
        """
        cells = _require_one_column(X)
        fitted, given = getattr(self, "feature_names_in_", None), getattr(X, "columns", None)
        if fitted is not None and given is not None and [str(n) for n in given] != [*fitted]:
            # Names are not shown: that of a table without a header is a text.
            raise InvalidValueError(
                "The feature names should match those that were passed during fit, but the column "
                "has another name; choose or rename the column, or call fit again"
            )
        released = np.empty(cells.size, dtype=object)
        released[:] = self._current().privatize(cells.ravel().tolist())
        return released.reshape(cells.shape)

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the name of the column, "text" if the input has none."""
        names = getattr(self, "feature_names_in_", ["text"])
        return np.asarray(names if input_features is None else input_features, dtype=object)

    @property
    def guarantee(self) -> PrivacyGuarantee:
        """Guarantee of one call of `transform`, for each word or text."""
        return self._current().guarantee

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = tags.input_tags.string = tags.input_tags.allow_nan = True
        tags.non_deterministic, tags.requires_fit, tags.no_validation = True, False, True
        return tags

    def _asked(self) -> tuple[Any, ...]:
        return self.space, self.mechanism, self.epsilon, self.privatizer

    def _current(self) -> "TextsPrivatizer":
        """Return the privatizer of `fit`, or another one if a parameter was set since."""
        before, made = getattr(self, "_made", ((), None))
        return self._make() if made is None or before != self._asked() else made

    def _make(self) -> "TextsPrivatizer":
        if self.privatizer is None:
            return DxPrivatizer(self.space, self.mechanism, self.epsilon)
        if self.mechanism is not None or self.epsilon is not None:
            raise InvalidValueError(
                "privatizer= brings its own mechanism and ε, so leave mechanism= and epsilon= out"
            )
        return require_texts_privatizer(self.privatizer)


def _require_one_column(texts: Any) -> NDArray[np.object_]:
    """Return (n,) or (n, 1) texts as an array."""
    cells: NDArray[np.object_] = np.asarray(texts, dtype=object)
    if cells.ndim == 0 or (cells.ndim > 1 and cells.shape[1:] != (1,)):
        raise InvalidValueError(
            f"expected texts of shape (n,) or (n, 1), got {cells.shape}; choose one column, or use "
            "a ColumnTransformer with one DxTransformer for each"
        )
    return cells
