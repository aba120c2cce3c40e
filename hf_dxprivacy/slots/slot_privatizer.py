"""`SlotPrivatizer`: perturb the words of slots, and leave the phrases around them as they are."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, a_kind
from hf_dxprivacy.hub import ArtifactSource
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.privatizers.config import PrivatizerConfig
from hf_dxprivacy.privatizers.dataset_formats import column_names
from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
from hf_dxprivacy.slots import Selector, selector_storage
from hf_dxprivacy.spaces import EmbeddingSpace


class SlotPrivatizer(DxPrivatizer):
    """Replaces the words of slots, as in "play **techno** on **lastfm**", and no other word.

    The words of a slot are replaced one by one, so that a name of three words becomes three words,
    and lists of tokens, with the tags beside them, keep their length. In everything else it is a
    `DxPrivatizer`. It protects less: see `guarantee`.

    Args:
        space: As for `DxPrivatizer`.
        mechanism: As for `DxPrivatizer`.
        epsilon: ε > 0, per unit of the mechanism's metric. Always your decision; no default.
        local_epsilon: As for `DxPrivatizer`, of any two words of a slot. The guarantee has no bound
            of any two words, since it shows which words are slots.
        selector: The selector of the slots; see `hf_dxprivacy.slots`.
        mask_column: Where to put the mask, as many as text columns: for each word of a released
            text, or each token of a list, whether it is of a slot.
        spans_column: Where to put the spans of the slots, as many as text columns: pairs of start
            and stop, in characters of the released text, or in tokens.
        **options: All others of `DxPrivatizer`. Stop words stay in slots too.

    Raises:
        InvalidTypeError: If an argument is of the wrong type.
        InvalidValueError: If an argument is out of range or unknown, or tags that the selector
            reads would not fit any more (``oov="drop"``).
    """

    published_files: ClassVar[tuple[str, ...]] = (
        *DxPrivatizer.published_files,
        selector_storage.FILES,
    )
    _owner = "SlotPrivatizer"
    _runtime_arguments = (*DxPrivatizer._runtime_arguments, "mask_column", "spans_column")

    def __init__(
        self,
        space: EmbeddingSpace | str | Path,
        mechanism: str | Mechanism | None = None,
        epsilon: float | None = None,
        *,
        local_epsilon: float | None = None,
        selector: Selector | None = None,
        mask_column: str | Sequence[str] | None = None,
        spans_column: str | Sequence[str] | None = None,
        **options: Any,
    ) -> None:
        if not isinstance(selector, Selector):
            raise InvalidTypeError(
                "expected selector= to be a selector of slots, got "
                f"{'none' if selector is None else a_kind(selector)}; hf_dxprivacy.slots has "
                "several, such as NerSelector and TagColumnSelector"
            )
        super().__init__(space, mechanism, epsilon, local_epsilon=local_epsilon, **options)
        if self.oov == "drop" and selector.columns:
            raise InvalidValueError(
                f'oov="drop" removes tokens, and column {selector.columns[0]!r}, which has a tag '
                'for each, would not fit any more; use oov="centroid"'
            )
        if self._paths and (selector.columns or mask_column or spans_column):
            raise InvalidValueError(
                f"{self.text_paths} lead to several texts of a row, for which there are no tags of "
                "words, and no mask_column= or spans_column=; leave these out, or give each text a "
                "row of its own"
            )
        count = len(self.text_columns)
        self._selector = selector
        if mask_column is not None:
            self._mask_columns = column_names("mask_column", mask_column, count)
        if spans_column is not None:
            self._spans_columns = column_names("spans_column", spans_column, count)
        written = [*self.output_columns, *self.mask_columns, *self.spans_columns]
        column_names("output_column, mask_column and spans_column", written, len(written))

    @property
    def selector(self) -> Selector:
        """The selector of slots."""
        assert self._selector is not None
        return self._selector

    @property
    def mask_columns(self) -> tuple[str, ...]:
        """Columns for the masks, one for each text column, or none."""
        return self._mask_columns

    @property
    def spans_columns(self) -> tuple[str, ...]:
        """Columns for the spans, one for each text column, or none."""
        return self._spans_columns

    def _settings(self) -> dict[str, Any]:
        return super()._settings() | {
            "selector": selector_storage.describe(self.selector),
            "mask_column": [*self.mask_columns] or None,
            "spans_column": [*self.spans_columns] or None,
        }

    @classmethod
    def _load_parts(
        cls, stored: PrivatizerConfig, source: ArtifactSource, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        described = stored.settings["selector"]
        for name in selector_storage.files(described):
            source.file(name)
        return {"selector": selector_storage.load(described, source.folder)}

    def _save(self, folder: Path) -> None:
        # First, because it fails if something cannot be saved at all.
        stored = self.config
        selector_storage.save(self.selector, folder)
        stored.write(folder)

    def _check_publishable(self, license: str | None) -> None:
        super()._check_publishable(license)
        self.selector.require_public()
