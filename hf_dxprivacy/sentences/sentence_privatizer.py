"""`SentencePrivatizer`: a public sentence in place of each text, or of each of its sentences."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from itertools import chain, pairwise, repeat
from pathlib import Path
from typing import Any, ClassVar, Literal, overload

import numpy as np

from hf_dxprivacy import randomness
from hf_dxprivacy._runtime import CPU, lazy_property
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError, a_kind, require_one_of
from hf_dxprivacy.guarantee import ENTRY, PrivacyGuarantee
from hf_dxprivacy.hub import HubOptions
from hf_dxprivacy.mechanisms import Mechanism, create_mechanism
from hf_dxprivacy.privatizers.batch import RowIds, TextCounts
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.dataset_formats import DatasetBatch, SingleRow, as_cells, column_names
from hf_dxprivacy.privatizers.disclosures import EQUAL_ROWS, of_nested
from hf_dxprivacy.privatizers.keyed_noise import Memoize, noise_source
from hf_dxprivacy.privatizers.nested import TextPath, agree
from hf_dxprivacy.privatizers.privatizer import Privatizer
from hf_dxprivacy.sentences import SentencePool, as_label, split_sentences
from hf_dxprivacy.sentences.encoded_sentences import EncodedSentences, joined
from hf_dxprivacy.sentences.pool_disclosures import of_sentences
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import is_missing
from hf_dxprivacy.text.refill import refill as refilled

Unit = Literal["text", "sentence"]


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
        local_epsilon: As for `DxPrivatizer`, of any two texts, or sentences; with labels, of one.
        unit: "text" releases one sentence for each text; "sentence" one for each of its sentences,
            whose number then shows, and whose bounds add up.
        text_column: The column to privatize, or several; cells are texts, or a path leads to some,
            as for `DxPrivatizer`; each message of a chat is one text then.
        output_column: Where the result goes; by default the text columns are overwritten.
        roles: As for `DxPrivatizer`.
        keep_calls: As for `DxPrivatizer`.
        label_column: A column with a public label of each row, such as its topic, which is
            released beside the text: a text becomes a sentence of its label. The pool has to know
            the labels of its sentences. Texts are hidden among those of one label, not among all.
        refill: Draw numbers, dates and names of people in what is released afresh, so that none
            of a public sentence is taken for one of the text. Changes no bound.
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
    _derived: ClassVar[tuple[str, ...]] = (*Privatizer._derived, "_parts")
    _runtime_arguments: ClassVar[tuple[str, ...]] = (
        *("text_column", "output_column", "roles", "keep_calls", "seed", "device"),
        *("memoize", "user_column", "key", "budget"),
    )

    def __init__(
        self,
        pool: SentencePool | str | Path,
        mechanism: str | Mechanism = "hierarchical",
        epsilon: float | None = None,
        *,
        local_epsilon: float | None = None,
        unit: Unit = "text",
        text_column: str | Sequence[str] = "text",
        output_column: str | Sequence[str] | None = None,
        roles: str | Sequence[str] | None = None,
        keep_calls: bool = False,
        label_column: str | None = None,
        refill: bool = False,
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
                f"expected pool to be a SentencePool or its name, got {a_kind(pool)}; words of an "
                "EmbeddingSpace are released by DxPrivatizer"
            )
        if not isinstance(refill, bool):
            raise InvalidTypeError(f"expected refill to be True or False, got {refill!r}")
        if label_column is not None and isinstance(mechanism, Mechanism):
            raise InvalidTypeError(
                "with label_column= a mechanism is made for each label: pass its name and epsilon="
            )
        noise = noise_source(seed, memoize, key)
        given = pool.space, mechanism, epsilon, options, device, noise, budget
        parts: list[EmbeddingSpace] = []
        if local_epsilon is not None and label_column is not None and pool.labels:
            parts = [pool.with_label(label).space for label in sorted({*pool.labels})]
        # Any ε keeps the bound of a single sentence.
        parts = [part for part in parts if len(part) > 1]
        self._set_up(*given, ("word", "user"), local_epsilon, parts)
        self.pool = pool
        self.unit: Unit = unit
        self.language = language
        if unit == "sentence":
            split_sentences("", language)
        self._set_columns(text_column, output_column, user_column, roles, keep_calls)
        self.refill = refill
        self.label_column = label_column
        if label_column is not None:
            column_names("label_column", label_column, 1)
            if label_column in (*self.text_columns, *self.output_columns):
                raise InvalidValueError(f"column {label_column!r} cannot be text and label at once")
            # What a label lacks shows now, and not in the middle of a release.
            _ = self._parts

    @lazy_property
    def _parts(self) -> dict[str | None, tuple[SentencePool, Mechanism]]:
        """The pool and the mechanism of each label; of None, if there are no labels."""
        law = self.mechanism
        if self.label_column is None:
            return {None: (self.pool, law)}
        options = {name: law.parameters[name] for name in law.options}
        parts: dict[str | None, tuple[SentencePool, Mechanism]] = {}
        for label in sorted(set(self.pool.labels or [""])):
            pool = self.pool.with_label(label)
            made = create_mechanism(law.name, pool.space, law.epsilon, **options)
            parts[label] = pool, made if law.device == CPU else made.to(law.device)
        return parts

    @lazy_property
    def guarantee(self) -> PrivacyGuarantee:
        """Guarantee for each text or sentence, and what it rests on; `bound` takes two texts.

        With labels `bound` takes two rows; it is ∞ between labels.
        """
        laws = [law for _, law in self._parts.values()]
        stated = [law.guarantee for law in laws]
        bare = max(stated, key=lambda each: each.ldp_epsilon)
        near: dict[int, float] = {}
        for k, bound in chain.from_iterable(each.neighbour_epsilon.items() for each in stated):
            near[k] = max(bound, near.get(k, 0.0))
        # What holds for one label only, such as its exact level, is not said of all of them.
        of_laws = [law.disclosures(ENTRY) for law in laws]
        said = [
            record
            for record in dict.fromkeys(chain.from_iterable(of_laws))
            if record.kind == "warning" or all(record in each for each in of_laws)
        ]
        shared = ["one label"] * (self.label_column is not None)
        shared += [EQUAL_ROWS] * (self.seed is not None or self.memoize == "row")
        nested = of_nested(self, self._paths) if self._paths else ()
        return replace(
            bare,
            epsilon=max(law.certified_epsilon for law in laws),
            unit=self.unit,
            among=", in ".join(shared),
            # A text that is equal to another one of its user can be told from one that is not.
            ldp_epsilon=math.inf if self.memoize == "user" else bare.ldp_epsilon,
            neighbour_epsilon=dict(sorted(near.items())),
            disclosures=(*of_sentences(self, said), *nested),
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
            indices: As for `DxPrivatizer`.
            rank: As for `DxPrivatizer`.
            on_counts: Called with the `TextCounts` of each text column. They are private.

        Returns:
            The output columns; for a table, the table with them.

        Raises:
            InvalidValueError: If a column is missing, a row lacks its user, or the pool its label.
            BudgetExceededError: If the budget does not suffice. Nothing is released then.
            InvalidTypeError: If a cell is neither a text nor missing.
        """
        del rank
        batch = DatasetBatch.of(examples)
        named = {self.user_column: "user_column=", self.label_column: "label_column="}
        beside = {name: argument for name, argument in named.items() if name is not None}
        inputs = beside | dict.fromkeys(self.text_columns, "text_column=")
        types = dict(zip(self.output_columns, self.text_columns, strict=True))
        batch.require(inputs, types, self.text_columns)
        # Not False for the last: a row with a list of tokens is to be refused, not taken for texts.
        if not batch.is_table and batch.is_single(self.text_columns, indices, None, self._paths):
            batch = SingleRow(examples, batch.names)
        cells = {name: batch.column(name) for name in inputs}
        row_ids = RowIds(batch.row_indices(indices, len(cells[self.text_columns[0]])))
        if self.user_column is not None:
            row_ids = row_ids.with_users(cells[self.user_column], self.user_column)
        labels = None if self.label_column is None else cells[self.label_column]
        columns = [
            self._encode(name, cells[name], row_ids, labels, self._paths.get(name))
            for name in self.text_columns
        ]
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
        self._require_no_columns("user_column", "label_column")
        column = self._encode(self.text_columns[0], as_cells(texts), RowIds())
        released = self._release([column])[self.output_columns[0]]
        return released[0] if isinstance(texts, str) else released

    def _encode(
        self,
        name: str,
        cells: Sequence[Any],
        row_ids: RowIds,
        labels: Sequence[Any] | None = None,
        path: TextPath | None = None,
    ) -> EncodedSentences:
        read: Callable[[Any], Any] = self._pieces
        if path is not None:
            name, read = str(path), partial(path.read, read)
        rows = row_ids.read(cells, name, read)
        of_rows: list[str | None] = [None] * len(rows)
        if labels is not None and self.label_column is not None:
            of_rows = [*row_ids.read(labels, self.label_column, self._label)]
        pools = {label: pool for label, (pool, _) in self._parts.items()}
        return EncodedSentences.encode(name, rows, row_ids, pools, of_rows)

    def _label(self, cell: Any) -> str:
        """Return a label that the pool has."""
        label = as_label(cell)
        if label not in self._parts:
            self.pool.with_label(label)
        return label

    def _pieces(self, cell: Any) -> list[str] | None:
        """Return what of a cell is looked up: the text, or its sentences."""
        if is_missing(cell):
            return None
        if not isinstance(cell, str):
            raise InvalidTypeError(
                f"expected a text, got a {type(cell).__name__}; join tokens to a text first, and "
                "give each text of a list, or message of a chat, a row of its own"
            )
        # NumPy has strings of its own, which seeded noise would tell from these.
        text = str(cell)
        found = [] if self.unit == "text" else split_sentences(text, self.language)
        # A text of spaces is one sentence, so that it is hidden as any other.
        return found or [text]

    def _release(self, columns: Sequence[EncodedSentences]) -> dict[str, list[str | None]]:
        """Charge the budget, draw entries, and return all output columns."""
        if self.budget is not None:
            costs = [column.expense(self.mechanism, self.budget.unit) for column in columns]
            most = max(law.space_epsilon for _, law in self._parts.values())
            # Another pool or unit has another entry for a text, so that distances differ.
            what = f", per {self.unit} by the pool {self.pool.digest[:12]}"
            if self.label_column is not None:
                what += f" and the labels in column {self.label_column!r}"
            self.budget.charge(
                [replace(cost, epsilon=most, metric=f"{cost.metric}{what}") for cost in costs]
            )
        result: dict[str, list[str | None]] = {}
        for output_column, column in zip(self.output_columns, columns, strict=True):
            new = self._draw(column)
            ranges = zip(column.rows, pairwise(column.offsets), strict=True)
            result[output_column] = [joined(row, new[start:stop]) for row, (start, stop) in ranges]
        return result

    def _draw(self, column: EncodedSentences) -> list[str]:
        """Draw a sentence for each one of a column."""
        drawn = np.empty(len(column.ids), dtype=object)
        for label, places, part in column.by_label():
            if not len(places):
                continue
            pool, law = self._parts[label]
            context = partial(self._context.__getitem__, label)
            rng = randomness.process_generator()
            if self._noise is None:
                outputs = law.sample(part.inputs, rng)
            else:
                outputs = self._noise.draw(law, part, context)
            drawn[places] = [pool.sentences[output] for output in outputs.tolist()]
            if self.refill:
                sources: Iterable[np.random.Generator] = repeat(rng, len(places))
                if self._noise is not None:
                    numbers = self._noise.uniforms(law, part, np.arange(len(places)), context)
                    keys = (blake2b(row, digest_size=randomness.KEY_BYTES) for row in numbers)
                    sources = (randomness.generator_from_key(key.digest()) for key in keys)
                drawn[places] = [*map(refilled, drawn[places], sources)]
        return [*drawn]

    @lazy_property
    def _context(self) -> dict[str | None, str]:
        """All that decides what is drawn, for which text and by which law: bound to the seed."""
        return {
            label: json.dumps([pool.digest, law.noise_parameters, self.unit, self.language])
            for label, (pool, law) in self._parts.items()
        }

    def _bound(self, text_a: Any, text_b: Any) -> float:
        """Bound the log-ratio of two texts, or rows with labels; see `PrivacyGuarantee.bound`."""
        name, labels, cells = self.text_columns[0], None, [text_a, text_b]
        if self.label_column is not None:
            needed = {name, self.label_column}
            if not all(isinstance(row, Mapping) and needed <= row.keys() for row in cells):
                both = f"{name!r} and {self.label_column!r}"
                raise InvalidTypeError(f"expected two rows with the columns {both}, as dicts")
            labels, cells = [row[self.label_column] for row in cells], [row[name] for row in cells]
        texts = any(isinstance(cell, str) for cell in cells)
        path = None if texts else self._paths.get(name)
        pair = self._encode(name, cells, RowIds(), labels, path)
        if any(row is None for row in pair.rows):
            raise InvalidTypeError("expected two texts, got a missing one")
        if pair.labels[0] != pair.labels[1] or pair.visible(0) != pair.visible(1):
            return math.inf
        if not agree(*pair.rows):
            return math.inf
        return self._input_bound(self._parts[pair.labels[0]][1], pair.row_inputs())

    def _settings(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in ("language", "label_column", "refill")}
        return {**self._column_settings(), "sentence_unit": self.unit, **own}

    def _reference(self) -> dict[str, Any]:
        return super()._reference() | {"digest": self.pool.digest}

    @classmethod
    def _read_space(
        cls, name: str | Path, revision: str | None, access: HubOptions, index: str | None
    ) -> SentencePool:
        del index
        return SentencePool.read(name, revision, access)
