"""`DxPrivatizer`: batches of rows in, the same batches with released words out."""

import json
import logging
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, overload

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import randomness
from hf_dxprivacy._runtime import CPU, lazy_property, no_collection
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, require_one_of
from hf_dxprivacy.guarantee import Disclosure, PrivacyGuarantee, marked, uncovered
from hf_dxprivacy.mechanisms import FLAT, Mechanism
from hf_dxprivacy.privatizers.batch import Case, EncodedText, OutOfVocabulary, RowIds, WordCounts
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.dataset_formats import (
    ColumnType,
    DatasetBatch,
    SingleRow,
    as_cells,
)
from hf_dxprivacy.privatizers.disclosures import EQUAL_ROWS, of_fits, of_nested, of_texts
from hf_dxprivacy.privatizers.keyed_noise import Memoize, noise_source
from hf_dxprivacy.privatizers.nested import TextPath, agree, flat, joined_masks
from hf_dxprivacy.privatizers.privatizer import NOT_LOCAL, Privatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import Cell, RowReader, is_missing, stop_words
from hf_dxprivacy.text.segmenters import WORDS, identity
from hf_dxprivacy.text.shapes import UNIFORMS, render

if TYPE_CHECKING:
    from hf_dxprivacy.text.selector import Selector

logger = logging.getLogger(__name__)

# Added to the disclosures of a privatizer that perturbs slots only.
SLOTS_ONLY = uncovered(
    "every other word as it is, and which words are slots (the mask)",
    "The statement holds for inputs that have the same other words and the same mask.",
    before="Only slots are perturbed.",
    how=", released",
)
# After so many words a share of unknown ones above this is reported once.
NOTED_WORDS, NOTED_SHARE = 100, 0.3


class DxPrivatizer(Privatizer):
    """Replaces the words of texts by other words, with a metric differential privacy guarantee.

    An instance goes straight into ``Dataset.map``, with ``batched=True`` or without, and with any
    ``num_proc``. It holds no generator: every process draws from its own key. A second ``map``
    over data loaded from files, with the same ``batch_size``, returns the cached release. Every
    other second ``map`` or read is a new release, whose bounds add up: of data made in memory
    (``from_dict``), of a stream, with another ``batch_size``, under ``set_transform``. `memoize`,
    or saving what ``map`` returned, avoids that.

    Args:
        space: An `EmbeddingSpace`, the name of a built-in one, a folder, or a repository.
        mechanism: A name ("hierarchical", "calibrated", "tem", "laplace", …), or a
            `Mechanism` of the same space.
        epsilon: ε > 0, per unit of the mechanism's metric. Always your decision; no default.
        local_epsilon: In place of ε: L > 0, the largest log-ratio of any two words. Takes the
            largest ε whose bound (`ldp_epsilon` of the guarantee) is at most L, to six digits.
        text_column: The column to privatize, or several. A cell is a text or a list of tokens; see
            docs/columns.md. A path leads to texts in lists of dicts: "messages[].content" are those
            of chats, "conversations[].value", ["chosen[].content", "rejected[].content"] and so on.
        output_column: Where the result goes, as many as text columns; by default the text columns
            are overwritten. What a path leads to is replaced in place.
        roles: With a path, the roles whose texts are privatized, as the data name them in "role" or
            "from": ("user",). All others are released as they are. None for all roles.
        keep_calls: With a path, release calls of tools as they are. By default those that hold
            strings, such as arguments, are refused, but what a path of its own leads to.
        segmenter: What splits texts: "words" at spaces and punctuation, so that a clause of Chinese
            is one word; "jieba" runs of Chinese characters too, with the extra ``chinese``. Where a
            word ends then depends on what is beside it; see docs/languages.md.
        stopwords: Words released as they are: None, "english", or any words.
        oov: Treatment of a word that the space lacks: "centroid" treats all of them as one
            input at the space's centroid, "drop" removes them, "keep" releases them unchanged,
            which is a hole in the guarantee.
        case: "lower" releases words as the vocabulary has them; "preserve" copies the letter case
            of the original, and so releases it.
        seed: None draws fresh noise. A whole number makes the result reproducible, whatever the
            batch size and ``num_proc``; it must then stay secret and be hard to guess, as
            ``secrets.randbits(128)`` is.
        index: How "laplace" and "mahalanobis" search: "flat" (exact), or the kind of an index that
            the space has, or is stored with.
        device: Where they compute: "cpu", or "cuda" or "cuda:1" with the extra ``gpu``.
        memoize: For data that are released again and again. "row": equal rows always become equal
            rows, whatever else is in the data. "user": a word of a user always becomes the same
            word. What is equal then shows; see docs/repeated-releases.md.
        user_column: The column that says whose a row is, for memoize="user" or a budget of users.
        key: The secret that `memoize` needs: 32 bytes or more, as ``secrets.token_bytes(32)``
            makes them, or the `Path` of a file that holds them.
        budget: A `PrivacyBudget` that is charged before anything is released.
        is_split_into_words: Whether cells are lists of tokens, for calls that do not show it:
            ``with_transform`` and streams, whose batch of texts looks like one row of tokens.
        **options: The mechanism's own options, such as ``lam=`` for "mahalanobis".

    Raises:
        InvalidTypeError: If an argument is of the wrong type.
        InvalidValueError: If an argument is out of range or unknown.
    """

    _owner = "DxPrivatizer"
    _runtime_arguments: ClassVar[tuple[str, ...]] = (
        *("text_column", "output_column", "roles", "keep_calls", "seed", "device"),
        *("memoize", "user_column", "key", "budget", "is_split_into_words"),
    )
    _derived = (*Privatizer._derived, "_reader", "_inputs", "_types", "_seen")

    # Of `SlotPrivatizer`: the selector of the words to perturb, and the columns that show them.
    _selector: "Selector | None" = None
    _segmenter = WORDS
    _mask_columns: tuple[str, ...] = ()
    _spans_columns: tuple[str, ...] = ()

    def __init__(
        self,
        space: "EmbeddingSpace | str | Path",
        mechanism: "str | Mechanism | None" = None,
        epsilon: float | None = None,
        *,
        local_epsilon: float | None = None,
        text_column: str | Sequence[str] = "text",
        output_column: str | Sequence[str] | None = None,
        roles: str | Sequence[str] | None = None,
        keep_calls: bool = False,
        segmenter: str = WORDS,
        stopwords: str | Iterable[str] | None = None,
        oov: OutOfVocabulary = "centroid",
        case: Case = "lower",
        seed: int | None = None,
        index: str = FLAT,
        device: str = CPU,
        memoize: Memoize | None = None,
        user_column: str | None = None,
        key: bytes | Path | None = None,
        budget: PrivacyBudget | None = None,
        is_split_into_words: bool | None = None,
        **options: Any,
    ) -> None:
        require_one_of((None, False, True), is_split_into_words=is_split_into_words)
        require_one_of(("centroid", "drop", "keep"), oov=oov)
        require_one_of(("lower", "preserve"), case=case)
        if index != FLAT:
            options["index"] = index
        noise = noise_source(seed, memoize, key)
        given = space, mechanism, epsilon, options, device, noise, budget
        self._set_up(*given, ("word", "user"), local_epsilon)
        self._set_columns(text_column, output_column, user_column, roles, keep_calls)
        self.is_split_into_words = is_split_into_words
        if segmenter != WORDS:
            self._segmenter = identity(segmenter)
            if is_split_into_words and self._segmenter != WORDS:
                raise InvalidValueError(
                    f"segmenter={segmenter!r} splits texts, and with is_split_into_words=True "
                    "there are none; leave one of them out"
                )
        self.stopwords = stop_words(stopwords, bool(is_split_into_words), segmenter)
        self.oov: OutOfVocabulary = oov
        self.case: Case = case
        hidden = oov == "centroid" and case == "lower" and not self.stopwords
        if local_epsilon is not None and not hidden:
            shown = 'stopwords=, oov="drop" or "keep", or case="preserve"'
            raise InvalidValueError(NOT_LOCAL.format(shown))
        # Words that this copy has looked up and those that the space lacks, for the owner of the
        # data, and whether a warning was given.
        self._seen = [0, 0, False]
        # Whether the tokens of one row come out otherwise than as many texts of one word. A row has
        # one user, so a column of them is a batch.
        matters = noise is not None or oov == "drop"
        self._must_be_clear = matters and user_column is None and is_split_into_words is None

    def __getstate__(self) -> dict[str, Any]:
        # A set iterates in another order in every process, and the fingerprint would follow.
        return super().__getstate__() | {"stopwords": tuple(sorted(self.stopwords))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        stopwords = frozenset(state["stopwords"])
        super().__setstate__(state | {"stopwords": stopwords, "_seen": [0, 0, False]})

    def __repr__(self) -> str:
        selector = "" if self._selector is None else f", selector={self._selector!r}"
        return f"{super().__repr__()[:-1]}, oov={self.oov!r}{selector})"

    @property
    def segmenter(self) -> str:
        """What splits texts: "words", or the identity of another segmenter."""
        return self._segmenter

    @property
    def index(self) -> str:
        """Kind of the index that "laplace" and "mahalanobis" search."""
        return str(self.mechanism.parameters.get("index", FLAT))

    @property
    def device(self) -> str:
        """Device of the search or of the distances."""
        return self.mechanism.device

    @property
    def unknown_share(self) -> float | None:
        """Share of words out of vocabulary among all that this process has looked up.

        Computed from private text: for the owner of the data only, not to be released. Several
        threads may lose some counts. None before the first word.
        """
        looked_up, unknown, _ = self._seen
        return unknown / looked_up if looked_up else None

    @lazy_property
    def guarantee(self) -> PrivacyGuarantee:
        """Guarantee for each word that goes through this privatizer, and what it rests on."""
        bare = self.mechanism.guarantee
        selected = self._selection_disclosures
        nested = of_nested(self, self._paths) if self._paths else ()
        # Whether any word may have been any other, as far as a release shows for certain. A word
        # that is equal to another one of its user can be told from one that is not.
        covered = self.oov == "centroid" and self.case == "lower" and not self.stopwords
        covered = covered and not selected and self.memoize != "user"
        return replace(
            bare,
            ldp_epsilon=bare.ldp_epsilon if covered else math.inf,
            among=EQUAL_ROWS if self.seed is not None or self.memoize == "row" else "",
            disclosures=(*bare.disclosures, *of_texts(self), *nested, *selected),
            log_ratio_bound=self._bound,
        )

    def _settings(self) -> dict[str, Any]:
        own = {"stopwords": sorted(self.stopwords), "oov": self.oov, "case": self.case}
        split = {} if self.segmenter == WORDS else {"segmenter": self.segmenter}
        return self._column_settings() | own | split

    # Rows in, rows out

    def __call__(
        self,
        examples: Any,
        indices: Any = None,
        rank: int | None = None,
        *,
        on_counts: Callable[[WordCounts], None] | None = None,
    ) -> Any:
        """Privatize one example or a batch, as `Dataset.map` hands them over.

        Args:
            examples: A row or a batch: a dict (of lists), or a table of pandas, polars or Arrow.
            indices: The row index or indices, with ``with_indices=True``; used with a seed,
                and by a budget.
            rank: The worker's number, with ``with_rank=True`` beside it; not used.
            on_counts: Called with the `WordCounts` of each text column. They are private.

        Returns:
            The output columns; for a table, the table with them.

        Raises:
            InvalidValueError: If a column is missing or would be lost, or a row lacks its user.
            BudgetExceededError: If the budget does not suffice. Nothing is released then.
            InvalidTypeError: If a cell is neither text, tokens nor missing.
        """
        del rank
        batch = DatasetBatch.of(examples)
        batch.require(self._inputs, self._types, self.text_columns)
        if not batch.is_table:
            split = self.is_split_into_words
            if batch.is_single(self.text_columns, indices, split, self._paths):
                batch = SingleRow(examples, batch.names)
            elif indices is None and self._must_be_clear and not self._paths:
                batch.require_clear(self.text_columns)
        with no_collection():
            cells = {name: batch.column(name) for name in self._inputs}
            row_ids = RowIds(batch.row_indices(indices, len(cells[self.text_columns[0]])))
            if self.user_column is not None:
                row_ids = row_ids.with_users(cells[self.user_column], self.user_column)
            columns = [
                self._encode(name, cells[name], row_ids, cells, self._paths.get(name))
                for name in self.text_columns
            ]
            return batch.with_columns(self._release(columns, on_counts), self._types)

    @overload
    def privatize(self, texts: str) -> str: ...
    @overload
    def privatize(self, texts: Iterable[Any]) -> list[Cell]: ...
    def privatize(self, texts: Any) -> Any:
        """Privatize a text, or several.

        Args:
            texts: A string, or several (or token lists; None passes through).

        Returns:
            The released text or texts.

        Raises:
            BudgetExceededError: If the budget does not suffice. Nothing is released then.
            InvalidTypeError: If it is neither, or one of them is neither text, tokens nor missing.
        """
        released = self._privatized(as_cells(texts), None, None, None)
        return released[0] if isinstance(texts, str) else released

    def privatize_counted(
        self, cells: Sequence[Any], column: str | None = None, keys: Sequence[int] | None = None
    ) -> tuple[list[Cell], WordCounts]:
        """Privatize cells, and count the words per action.

        Args:
            cells: Texts, token lists or None.
            column: The column's name, which tells its seeded noise from another column's; by
                default the first of `text_columns`, or its path.
            keys: Row indices, for seeded noise and for a budget.

        Returns:
            The released cells and the counts. Only the cells are covered by the guarantee.
        """
        counts: list[WordCounts] = []
        return self._privatized(cells, column, keys, counts.append), counts[0]

    def _privatized(
        self,
        cells: Sequence[Any],
        column: str | None,
        keys: Sequence[int] | None,
        on_counts: Callable[[WordCounts], None] | None,
    ) -> list[Cell]:
        self._require_no_columns("user_column")
        with no_collection():
            encoded = self._encode(column or self.text_paths[0], cells, RowIds(keys), None)
            return self._release([encoded], on_counts)[self.output_columns[0]]

    def _encode(
        self,
        name: str,
        cells: Sequence[Any],
        row_ids: RowIds,
        batch: Mapping[str, Any] | None,
        path: TextPath | None = None,
    ) -> EncodedText:
        read: Callable[[Any], Any] = self._reader.read
        if path is not None:
            name, read = str(path), partial(path.read, self._reader.read_text)
        rows, masks = self._select(row_ids.read(cells, name, read), batch)
        return EncodedText.encode(
            name,
            rows,
            row_ids,
            self.mechanism.space,
            stopwords=self.stopwords,
            oov=self.oov,
            case=self.case,
            masks=masks,
        )

    def _select(
        self, rows: Sequence[Any], batch: Mapping[str, Any] | None
    ) -> tuple[Sequence[Any], Sequence[Any] | None]:
        """Return the rows to release, and which of their words are perturbed; None for all."""
        if self._selector is None:
            return rows, None
        return rows, joined_masks(rows, self._selector.masks(flat(rows), batch))

    @property
    def _selection_disclosures(self) -> tuple[Disclosure, ...]:
        if self._selector is None:
            return ()
        fits = self._selector.corpora.values()
        added = (of_fits(sum(fits)),) if fits else ()
        return (SLOTS_ONLY, *map(marked, self._selector.disclosures), *added)

    def _release(
        self, columns: Sequence[EncodedText], on_counts: Callable[[WordCounts], None] | None
    ) -> dict[str, list[Any]]:
        """Charge the budget, draw other words, and return all output columns."""
        if self.budget is not None:
            unit = self.budget.unit
            self.budget.charge([column.expense(self.mechanism, unit) for column in columns])
        mechanism, noise, space = self.mechanism, self._noise, self.mechanism.space
        result: dict[str, list[Any]] = {}
        for at, column in enumerate(columns):
            if noise is None:
                outputs = mechanism.sample(column.inputs, randomness.process_generator())
            else:
                outputs = noise.draw(mechanism, column, lambda: self._context)
            new = [space.words[output] for output in outputs.tolist()]
            if space.shapes:
                self._render(new, column, np.flatnonzero(space.is_shape[outputs]))
            words = column.released(new)
            cells = zip(column.rows, words, strict=True)
            result[self.output_columns[at]] = [
                None if row is None else row.detokenize(released) for row, released in cells
            ]
            if self._mask_columns:
                result[self._mask_columns[at]] = column.slot_masks(words)
            if self._spans_columns:
                result[self._spans_columns[at]] = column.slot_spans(words)
            rendered = space.is_shape if space.shapes else None
            counts = column.counts(outputs, rendered)
            self._seen[0] += counts.replaced + counts.unchanged + counts.out_of_vocabulary
            self._seen[1] += counts.out_of_vocabulary
            if on_counts is not None:
                names = column.capitalized(outputs, rendered, words)
                on_counts(replace(counts, left=column.left, **names))
        looked_up, unknown, warned = self._seen
        if not warned and looked_up >= NOTED_WORDS and unknown > NOTED_SHARE * looked_up:
            self._seen[2] = True
            logger.warning(
                "more than %.0f %% of the words are not in the space, and come out as words that "
                "have nothing to do with them; is the text in the language of the space, and split "
                "into its words (segmenter=)? "
                "privatizer.unknown_share has the share, which is private",
                100 * NOTED_SHARE,
            )
        return result

    def _render(self, words: list[str], column: EncodedText, places: NDArray[np.int64]) -> None:
        """Put random words in the places of those that are shapes."""
        if not len(places):
            return
        numbers: NDArray[np.floating]
        if self._noise is None:
            numbers = randomness.process_generator().random((len(places), UNIFORMS))
        else:
            numbers = self._noise.uniforms(self.mechanism, column, places, lambda: self._context)
        for place, uniforms in zip(places.tolist(), numbers.tolist(), strict=True):
            words[place] = render(words[place], uniforms)

    @lazy_property
    def _context(self) -> str:
        """The stream context: all on which the law of an output depends, bound to the seed."""
        kept = sorted(self.stopwords)
        return json.dumps([self.space.digest, self.mechanism.noise_parameters, self.oov, kept])

    @lazy_property
    def _reader(self) -> RowReader:
        return RowReader(self.segmenter)

    @lazy_property
    def _inputs(self) -> dict[str, str]:
        """All columns that are read, and the argument that names each."""
        selector = self._selector
        read = {} if selector is None else dict.fromkeys(selector.columns, repr(selector))
        owner = {} if self.user_column is None else {self.user_column: "user_column="}
        return read | owner | dict.fromkeys(self.text_columns, "text_column=")

    @lazy_property
    def _types(self) -> dict[str, ColumnType]:
        """The type of each output column."""
        types: dict[str, ColumnType] = {}
        types |= zip(self.output_columns, self.text_columns, strict=True)
        types |= dict.fromkeys(self._mask_columns, lambda pa: pa.list_(pa.bool_()))
        types |= dict.fromkeys(self._spans_columns, lambda pa: pa.list_(pa.list_(pa.int64())))
        return types

    # The bound of two texts

    def _bound(self, text_a: Any, text_b: Any) -> float:
        """Bound the log-ratio of two texts, token lists or, for a selector of columns, rows."""
        first, second = self._encode_one(text_a), self._encode_one(text_b)
        if first.visible(0) != second.visible(0) or not agree(first.rows[0], second.rows[0]):
            return math.inf
        bound = self._input_bound(self.mechanism, [first.inputs, second.inputs])
        if self._selector is None:
            return bound
        # Each text may be a record of what the selector was fitted on, and shift every mask.
        pairs = zip(flat(first.rows), flat(second.rows), strict=True)
        others = sum([*a] != [*b] for a, b in pairs)
        # Replaced is removed and added.
        return bound + others * 2 * sum(self._selector.corpora.values())

    def _encode_one(self, text: Any) -> EncodedText:
        name = self.text_columns[0]
        row = text if isinstance(text, Mapping) and self._selector is not None else {name: text}
        if name not in row:
            raise InvalidValueError(f"expected rows with the column {name!r} to bound")
        if is_missing(row[name]):
            raise InvalidTypeError("expected two texts or lists of tokens, got a missing one")
        if self.is_split_into_words and isinstance(row[name], str):
            raise InvalidTypeError(
                "expected lists of tokens, got a text: the privatizer was made with "
                "is_split_into_words=True, and a token is one word whatever it holds"
            )
        batch = {column: [row[column]] for column in self._inputs if column in row}
        path = None if isinstance(row[name], str) else self._paths.get(name)
        return self._encode(name, batch[name], RowIds(), batch, path)
