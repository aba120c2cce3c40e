"""`SentencePrivatizer`: a public sentence in place of each text, or of each of its sentences."""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, ClassVar, Literal, overload

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import randomness
from hf_dxprivacy._runtime import CPU, lazy_property
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, require_one_of
from hf_dxprivacy.guarantee import PrivacyGuarantee, sentence_disclosures
from hf_dxprivacy.hub import HubOptions
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.privatizers.batch import BINS, EncodedColumn, RowIds, TextCounts
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.dataset_formats import DatasetBatch, SingleRow
from hf_dxprivacy.privatizers.keyed_noise import Memoize, noise_source
from hf_dxprivacy.privatizers.privatizer import Privatizer
from hf_dxprivacy.sentences import SentencePool, split_sentences
from hf_dxprivacy.text import is_missing

Unit = Literal["text", "sentence"]


@dataclass(frozen=True, eq=False, repr=False)
class EncodedSentences(EncodedColumn):
    """A column of texts, each as one entry of a pool or as one for each of its sentences.

    Attributes:
        rows: For each cell what is looked up: the text, or its sentences; None for a missing one.
        cosines: (m,) between what is looked up and its entry.
    """

    rows: Sequence[list[str] | None]
    cosines: NDArray[np.float64]

    @classmethod
    def encode(
        cls, name: str, rows: Sequence[list[str] | None], row_ids: RowIds, pool: SentencePool
    ) -> "EncodedSentences":
        """Look up texts or sentences in a pool."""
        pieces = [*chain.from_iterable(row or () for row in rows)]
        offsets = [*accumulate((len(row or ()) for row in rows), initial=0)]
        perturbed = np.ones(len(pieces), dtype=np.bool_)
        ids, cosines = pool.nearest(pieces)
        return cls(name, row_ids, offsets, ids, perturbed, rows, cosines)

    def counts(self) -> TextCounts:
        """Count texts and entries, and how far the texts are from these."""
        bins = np.clip((self.cosines[self.ids >= 0] + 1) * (BINS / 2), 0, BINS - 1).astype(np.int64)
        return TextCounts(
            texts=sum(row is not None for row in self.rows),
            total=len(self.ids),
            unknown=int((self.ids < 0).sum()),
            cosines=tuple(np.bincount(bins, minlength=BINS).tolist()),
        )

    def contents(self) -> Iterator[Sequence[str]]:
        """Return for each row its sentences."""
        for row in self.rows:
            yield row or ()

    def visible(self, row: int) -> list[Any]:
        """Return the number of sentences."""
        return [len(self.rows[row] or ())]


class SentencePrivatizer(Privatizer):
    """Replaces whole texts by public sentences, with metric differential privacy for a whole text.

    A text is looked up as its nearest entry of a pool, and a mechanism draws the entry that is
    released. One bound holds for the text, however long: nothing adds up over its words, and
    length, spelling, punctuation and style are hidden. What comes out was written by somebody
    else, about something near. See docs/sentences.md.

    An instance goes straight into ``Dataset.map``, with ``batched=True`` or without, and with any
    ``num_proc``.

    Args:
        pool: A `SentencePool`, or the name of a stored one.
        mechanism: As for `DxPrivatizer`; its space is that of the pool.
        epsilon: ε > 0, per unit of the mechanism's metric. Always your decision; no default.
        unit: "text" releases one sentence for each text; "sentence" one for each of its sentences,
            whose number then shows, and whose bounds add up.
        text_column: The column to privatize, or several; cells are texts.
        output_column: Where the result goes; by default the text columns are overwritten.
        language: Of the texts, for the rules that split them, as a code of ISO 639-1.
        seed: As for `DxPrivatizer`.
        device: As for `DxPrivatizer`; the encoder has its own.
        memoize: As for `DxPrivatizer`; with "user" the same text of a user always becomes the same
            sentence.
        user_column: As for `DxPrivatizer`.
        key: As for `DxPrivatizer`.
        budget: As for `DxPrivatizer`; a unit here counts as a word there.
        **options: The mechanism's own options.

    Raises:
        InvalidTypeError: If an argument is of the wrong type.
        InvalidValueError: If an argument is out of range or unknown.
        MissingExtraError: With unit "sentence", if sentencex is not installed.
    """

    _owner = "SentencePrivatizer"
    _runtime_arguments: ClassVar[tuple[str, ...]] = (
        *("text_column", "output_column", "seed", "device"),
        *("memoize", "user_column", "key", "budget"),
    )

    def __init__(
        self,
        pool: SentencePool | str | Path,
        mechanism: str | Mechanism = "hierarchical",
        epsilon: float | None = None,
        *,
        unit: Unit = "text",
        text_column: str | Sequence[str] = "text",
        output_column: str | Sequence[str] | None = None,
        language: str = "en",
        seed: int | None = None,
        device: str = CPU,
        memoize: Memoize | None = None,
        user_column: str | None = None,
        key: bytes | Path | None = None,
        budget: PrivacyBudget | None = None,
        **options: Any,
    ) -> None:
        require_one_of(("text", "sentence"), unit=unit)
        if isinstance(pool, (str, Path)):
            pool = SentencePool.from_pretrained(pool)
        if not isinstance(pool, SentencePool):
            raise InvalidTypeError(
                f"expected pool to be a SentencePool or its name, got a {type(pool).__name__}"
            )
        noise = noise_source(seed, memoize, key)
        space = pool.space
        self._set_up(space, mechanism, epsilon, options, device, noise, budget, ("word", "user"))
        self.pool = pool
        self.unit: Unit = unit
        self.language = language
        if unit == "sentence":
            split_sentences("", language)
        self._set_columns(text_column, output_column, user_column)

    @property
    def memoize(self) -> Memoize | None:
        """Unit that is always released in the same way: "row", "user", or None."""
        return None if self._noise is None else self._noise.unit

    @lazy_property
    def guarantee(self) -> PrivacyGuarantee:
        """Guarantee for each text or sentence, and what it rests on; `bound` takes two texts."""
        bare = self.mechanism.guarantee
        disclosures = sentence_disclosures(
            self.unit, len(self.pool), self.seed is not None, self.memoize
        )
        return replace(
            bare,
            unit=self.unit,
            # A text that is equal to another one of its user can be told from one that is not.
            ldp_epsilon=math.inf if self.memoize == "user" else bare.ldp_epsilon,
            assumptions=(*bare.assumptions, *disclosures),
            log_ratio_bound=self._bound,
        )

    def __call__(
        self,
        examples: Any,
        indices: Any = None,
        rank: int | None = None,
        *,
        on_counts: Callable[[TextCounts], None] | None = None,
    ) -> Any:
        """Privatize one example or a batch, as `Dataset.map` hands them over.

        Args:
            examples: A row or a batch: a dict (of lists), or a table of pandas, polars or Arrow.
            indices: The row index or indices, with ``with_indices=True``; used with a seed, and by
                a budget.
            rank: The worker's number, with ``with_rank=True`` beside it; not used.
            on_counts: Called with the `TextCounts` of each text column. They are private.

        Returns:
            The output columns; for a table, the table with them.

        Raises:
            InvalidValueError: If a column is missing, or a row lacks its user.
            BudgetExceededError: If the budget does not suffice. Nothing is released then.
            InvalidTypeError: If a cell is neither a text nor missing.
        """
        del rank
        batch = DatasetBatch.of(examples)
        owner = {} if self.user_column is None else {self.user_column: "user_column="}
        inputs = owner | dict.fromkeys(self.text_columns, "text_column=")
        types = dict(zip(self.output_columns, self.text_columns, strict=True))
        batch.require(inputs, types, self.text_columns)
        # Not False for the last: a row with a list of tokens is to be refused, not taken for texts.
        if not batch.is_table and batch.is_single(self.text_columns, indices, None):
            batch = SingleRow(examples, batch.names)
        cells = {name: batch.column(name) for name in inputs}
        row_ids = RowIds(batch.row_indices(indices, len(cells[self.text_columns[0]])))
        if self.user_column is not None:
            row_ids = row_ids.with_users(cells[self.user_column], self.user_column)
        columns = [self._encode(name, cells[name], row_ids) for name in self.text_columns]
        released = self._release(columns)
        if on_counts is not None:
            for column in columns:
                on_counts(column.counts())
        return batch.with_columns(released, types)

    @overload
    def privatize(self, texts: str) -> str: ...
    @overload
    def privatize(self, texts: Iterable[Any]) -> list[str | None]: ...
    def privatize(self, texts: Any) -> Any:
        """Privatize a text, or several.

        Args:
            texts: A string, or several; None passes through.

        Returns:
            The released text or texts.

        Raises:
            BudgetExceededError: If the budget does not suffice. Nothing is released then.
            InvalidTypeError: If it is neither.
        """
        if self.user_column is not None:
            raise InvalidValueError(
                f"user_column={self.user_column!r} is set, so call the privatizer on rows that "
                "have that column, as dataset.map(privatizer) does, not on bare texts"
            )
        if isinstance(texts, (bytes, Mapping)) or not isinstance(texts, Iterable):
            raise InvalidTypeError(
                f"expected a text or a sequence of texts, got a {type(texts).__name__}; "
                "rows of a dataset go through the privatizer itself, as in dataset.map(privatizer)"
            )
        cells = [texts] if isinstance(texts, str) else list(texts)
        name = self.text_columns[0]
        released = self._release([self._encode(name, cells, RowIds())])[self.output_columns[0]]
        return released[0] if isinstance(texts, str) else released

    def _encode(self, name: str, cells: Sequence[Any], row_ids: RowIds) -> EncodedSentences:
        rows = row_ids.read(cells, name, self._pieces)
        return EncodedSentences.encode(name, rows, row_ids, self.pool)

    def _pieces(self, cell: Any) -> list[str] | None:
        """Return what of a cell is looked up: the text, or its sentences."""
        if is_missing(cell):
            return None
        if not isinstance(cell, str):
            raise InvalidTypeError(
                f"expected a text, got a {type(cell).__name__}; join tokens to a text first"
            )
        # A text of spaces is one sentence, so that it is hidden as any other.
        whole = self.unit == "text"
        return [cell] if whole else split_sentences(cell, self.language) or [cell]

    def _release(self, columns: Sequence[EncodedSentences]) -> dict[str, list[str | None]]:
        """Charge the budget, draw entries, and return all output columns."""
        if self.budget is not None:
            costs = [column.expense(self.mechanism, self.budget.unit) for column in columns]
            # Another pool or unit has another entry for a text, so that distances differ.
            what = f", per {self.unit} by the pool {self.pool.digest[:12]}"
            self.budget.charge([replace(cost, metric=cost.metric + what) for cost in costs])
        result: dict[str, list[str | None]] = {}
        for output_column, column in zip(self.output_columns, columns, strict=True):
            if self._noise is None:
                outputs = self.mechanism.sample(column.inputs, randomness.process_generator())
            else:
                outputs = self._noise.draw(self.mechanism, column, lambda: self._context)
            new = [self.pool.sentences[output] for output in outputs.tolist()]
            ranges = zip(column.rows, pairwise(column.offsets), strict=True)
            result[output_column] = [
                None if row is None else " ".join(new[start:stop]) for row, (start, stop) in ranges
            ]
        return result

    @lazy_property
    def _context(self) -> str:
        """All that decides what is drawn, for which text and by which law: bound to the seed."""
        law = self.mechanism.noise_parameters
        return json.dumps([self.pool.digest, law, self.unit, self.language])

    def _bound(self, text_a: Any, text_b: Any) -> float:
        """Bound the log-ratio of two texts; see `PrivacyGuarantee.bound`."""
        both = self._encode(self.text_columns[0], [text_a, text_b], RowIds())
        if any(row is None for row in both.rows):
            raise InvalidTypeError("expected two texts, got a missing one")
        if both.visible(0) != both.visible(1):
            return math.inf
        pairs = np.column_stack(both.row_inputs())
        if self.memoize == "user":
            # As for words: texts that are equal in one row only tell it apart.
            pairs = np.unique(pairs, axis=0)
            if any(len(np.unique(ids)) < len(pairs) for ids in pairs.T):
                return math.inf
        return self.mechanism.id_bound(pairs[:, 0], pairs[:, 1])

    def _settings(self) -> dict[str, Any]:
        same = self.output_columns == self.text_columns
        return {
            "text_column": [*self.text_columns],
            "output_column": None if same else [*self.output_columns],
            "sentence_unit": self.unit,
            "language": self.language,
        }

    def _reference(self) -> dict[str, Any]:
        return super()._reference() | {"digest": self.pool.digest}

    @classmethod
    def _read_space(
        cls, name: str | Path, revision: str | None, access: HubOptions, index: str | None
    ) -> SentencePool:
        del index
        return SentencePool.read(name, revision, access)
