"""From rows to rows: the object that goes into `Dataset.map`."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate, columns
from hf_dxprivacy.errors import InvalidTypeError
from hf_dxprivacy.guarantees import PrivacyGuarantee, text_disclosures
from hf_dxprivacy.mechanisms import DEFAULT, FLAT, Mechanism, required_index, resolve_mechanism
from hf_dxprivacy.plan import Case, OutOfVocabulary, Plan, WordCounts
from hf_dxprivacy.randomness import row_streams
from hf_dxprivacy.settings import Settings, SpaceReference
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.stored import StoredPrivatizer
from hf_dxprivacy.text import Cell, Row, RowReader, fill, stop_words


class DxPrivatizer(StoredPrivatizer):
    """Replaces the words of texts by other words, with a metric differential privacy guarantee.

    An instance goes straight into ``Dataset.map``, with ``batched=True`` or without, and with any
    ``num_proc``. It holds no generator: every process draws from its own key. Its fingerprint is
    stable, so a second ``map`` over the same data returns the cached release and no second one.

    Args:
        space: An `EmbeddingSpace`, the name of a built-in one, a folder, or a repository.
        mechanism: A name ("calibrated", "tem", "laplace", "mahalanobis", "hyperbolic"), or a
            `Mechanism` of the same space.
        epsilon: ε > 0, per unit of the mechanism's metric. Always your decision; no default.
        text_column: The column to privatize, or several. A cell is a text or a list of tokens.
        output_column: Where the result goes, as many as text columns; by default the text columns
            are overwritten.
        stopwords: Words released as they are: None, "english", or a set.
        oov: What becomes of a word that the space lacks: "centroid" treats all of them as one
            input at the space's centroid, "drop" removes them, "keep" releases them unchanged,
            which is a hole in the guarantee.
        case: "lower" releases words as the vocabulary has them; "preserve" copies the letter case
            of the original, and so releases it.
        seed: None draws fresh noise. A whole number makes the result reproducible, whatever the
            batch size and ``num_proc``; it must then stay secret and be hard to guess, as
            ``secrets.randbits(128)`` is.
        index: How "laplace" and "mahalanobis" search: "flat" (exact), or the kind of an index that
            the space has, or is stored with.
        device: Where they compute: "cpu".
        **options: The mechanism's own options, such as ``lam=`` for "mahalanobis".

    Raises:
        InvalidTypeError: If an argument is of the wrong type.
        InvalidValueError: If an argument is out of range or unknown.
    """

    def __init__(
        self,
        space: "EmbeddingSpace | str | Path",
        mechanism: "str | Mechanism" = DEFAULT,
        epsilon: float | None = None,
        *,
        text_column: str | Sequence[str] = "text",
        output_column: str | Sequence[str] | None = None,
        stopwords: str | AbstractSet[str] | None = None,
        oov: OutOfVocabulary = "centroid",
        case: Case = "lower",
        seed: int | None = None,
        index: str = FLAT,
        device: Literal["cpu"] = "cpu",
        **options: Any,
    ) -> None:
        _validate.one_of(("centroid", "drop", "keep"), oov=oov)
        _validate.one_of(("lower", "preserve"), case=case)
        _validate.one_of(("cpu",), device=device)
        if seed is not None:
            _validate.at_least(0, "a seed is a whole number", seed=seed)
        if index != FLAT:
            options["index"] = index
        if isinstance(space, (str, Path)):
            space = EmbeddingSpace.from_pretrained(space, index=required_index(mechanism, options))
        self.mechanism = resolve_mechanism(mechanism, space, epsilon, options)
        self.text_columns = columns.names("text_column", text_column)
        self.output_columns = (
            self.text_columns
            if output_column is None
            else columns.names("output_column", output_column, len(self.text_columns))
        )
        self.stopwords = stop_words(stopwords)
        self.oov = oov
        self.case = case
        self.seed = None if seed is None else int(seed)
        self.index = self.mechanism.parameters.get("index", FLAT)
        self.device = device

    def __getstate__(self) -> dict[str, Any]:
        derived = ("guarantee", "_reader", "_settings")
        state = {k: v for k, v in self.__dict__.items() if k not in derived}
        # A set iterates in another order in every process, and the fingerprint would follow.
        state["stopwords"] = tuple(sorted(self.stopwords))
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, stopwords=frozenset(state["stopwords"]))

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in self.mechanism.parameters.items())
        return f"{type(self).__name__}({self.space!r}, {settings}, oov={self.oov!r})"

    @property
    def space(self) -> EmbeddingSpace:
        """The embedding space."""
        return self.mechanism.space

    @property
    def epsilon(self) -> float:
        """ε as it was asked for; `guarantee` says what is certified."""
        return self.mechanism.epsilon

    @cached_property
    def guarantee(self) -> PrivacyGuarantee:
        """What holds for each word that goes through this privatizer, and what it rests on."""
        bare = self.mechanism.guarantee
        return replace(
            bare,
            # A word that is released or dropped as such, or a letter case that is, can be told
            # from every other for certain.
            ldp_epsilon=bare.ldp_epsilon if self._hides_every_word else math.inf,
            assumptions=(
                *bare.assumptions,
                *self._disclosures,
            ),
            log_ratio_bound=self._bound,
        )

    @property
    def settings(self) -> Settings:
        """All decisions but the seed.

        Raises:
            InvalidValueError: If the space is in memory only, so that nothing can refer to it.
        """
        mechanism = self.mechanism
        return Settings(
            space=SpaceReference.to(self.space),
            mechanism=mechanism.name,
            epsilon=mechanism.epsilon,
            options={name: mechanism.parameters[name] for name in mechanism.options},
            text_column=list(self.text_columns),
            # Named only if it differs: whoever loads this for another text column must not find
            # the original text left beside the result.
            output_column=(
                None if self.output_columns == self.text_columns else list(self.output_columns)
            ),
            stopwords=sorted(self.stopwords),
            oov=self.oov,
            case=self.case,
        )

    def __call__(self, examples: Any, indices: Any = None, rank: int | None = None) -> Any:
        """Privatize one example or a batch, as `Dataset.map` hands them over.

        Args:
            examples: A row or a batch: a dict (of lists), a pandas DataFrame or an Arrow table.
            indices: The row index or indices, with ``with_indices=True``; used with a seed.
            rank: The worker's number, with ``with_rank=True`` beside it; not used.

        Returns:
            The output columns; for a DataFrame or an Arrow table, the table with them.

        Raises:
            InvalidValueError: If a text column is missing.
            InvalidTypeError: If a cell is neither text, tokens nor missing.
        """
        del rank
        columns.require(examples, self._inputs)
        table = columns.is_table(examples)
        if not table and columns.is_single(examples, self.text_columns, indices):
            row = {name: [examples[name]] for name in self._inputs}
            key = None if indices is None else [indices]
            return {name: cells[0] for name, cells in self._columns(row, key).items()}
        if not table and indices is None and (self.seed is not None or self.oov == "drop"):
            columns.require_clear(examples, self.text_columns)
        batch = columns.read(examples, self._inputs)
        keys = columns.row_keys(indices, len(batch[self.text_columns[0]]), table)
        return columns.write(examples, self._columns(batch, keys), self._sources)

    @overload
    def privatize(self, texts: str) -> str: ...
    @overload
    def privatize(self, texts: list[Any] | tuple[Any, ...]) -> list[Cell]: ...
    def privatize(self, texts: Any) -> Any:
        """Privatize a text, or several.

        Args:
            texts: A string, or a sequence of strings (or token lists; None passes through).

        Returns:
            The released text or texts.

        Raises:
            InvalidTypeError: If it is neither, or one of them is neither text, tokens nor missing.
        """
        if isinstance(texts, str):
            return self.privatize_counted([texts])[0][0]
        if isinstance(texts, (bytes, Mapping)) or not isinstance(texts, Iterable):
            raise InvalidTypeError(
                f"expected a text or a sequence of texts, got a {type(texts).__name__}; "
                "rows of a dataset go through the privatizer itself, as in dataset.map(privatizer)"
            )
        return self.privatize_counted(list(texts))[0]

    def privatize_counted(
        self, cells: Sequence[Any], column: str = "text", keys: Sequence[int] | None = None
    ) -> tuple[list[Cell], WordCounts]:
        """Privatize cells, and count what happened to their words.

        Args:
            cells: Texts, token lists or None.
            column: The column's name, which tells its seeded noise from another column's.
            keys: Row indices, for seeded noise.

        Returns:
            The released cells and the counts. Only the cells are covered by the guarantee.
        """
        rows = self._reader.read_column(cells, column, keys)
        released, counts = self._replaced(rows, column, keys)
        return fill(rows, released), counts

    def _replaced(
        self,
        rows: Sequence[Row | None],
        column: str,
        keys: Sequence[int] | None,
        slots: NDArray[np.bool_] | None = None,
    ) -> tuple[list[list[str | None]], WordCounts]:
        """Return for each row what takes the place of its words; `slots` as for `Plan.of`."""
        words = list(chain.from_iterable(row for row in rows if row is not None))
        plan = Plan.of(words, self.space, self.stopwords, self.oov, slots)
        ends = np.cumsum([len(row or ()) for row in rows], dtype=np.int64)
        drawn = np.split(plan.drawn, ends)[:-1]
        # Which words are drawn is a part of what a stream is for: two releases that choose others
        # of one text, with the same noise, would cancel it out.
        contents = [(*(r or ()), d.tobytes().hex()) for r, d in zip(rows, drawn, strict=True)]
        counts = [np.count_nonzero(part) for part in drawn]
        streams = row_streams(self.seed, (self._settings, column), contents, keys, counts)
        outputs = self.mechanism.sample(plan.ids[plan.drawn], streams)
        released = iter(plan.released(words, outputs, self.space.words, self.oov, self.case))
        return [list(islice(released, len(row or ()))) for row in rows], plan.counts(outputs)

    def _columns(self, batch: columns.Columns, keys: Sequence[int] | None) -> dict[str, list[Cell]]:
        pairs = zip(self.text_columns, self.output_columns, strict=True)
        return {out: self.privatize_counted(batch[name], name, keys)[0] for name, out in pairs}

    @property
    def _inputs(self) -> tuple[str, ...]:
        """All columns that are read."""
        return self.text_columns

    @property
    def _sources(self) -> dict[str, columns.Source]:
        """Where each output column has its type from."""
        return dict(zip(self.output_columns, self.text_columns, strict=True))

    @property
    def _disclosures(self) -> tuple[str, ...]:
        return text_disclosures(self.oov, self.case, len(self.stopwords), self.seed is not None)

    @property
    def _hides_every_word(self) -> bool:
        return self.oov == "centroid" and self.case == "lower" and not self.stopwords

    @cached_property
    def _settings(self) -> str:
        """All that decides what is drawn, for which word and by which law."""
        kept = sorted(self.stopwords)
        return json.dumps([self.space.digest, self.mechanism.law, self.oov, kept])

    @cached_property
    def _reader(self) -> RowReader:
        return RowReader()

    def _bound(self, text_a: Any, text_b: Any) -> float:
        """Bound the log-ratio of two texts; see `PrivacyGuarantee.bound`."""
        visible_a, ids_a = self._visible(text_a)
        visible_b, ids_b = self._visible(text_b)
        if visible_a != visible_b:
            return math.inf
        return self.mechanism.id_bound(ids_a, ids_b)

    def _visible(self, text: Any) -> tuple[list[Any], NDArray[np.int64]]:
        """Return what a release of a text shows for certain, and the inputs of the words drawn."""
        row = self._reader.read_text(text)
        plan = Plan.of(row.words, self.space, self.stopwords, self.oov)
        return plan.visible(row, self.oov, self.case), plan.ids[plan.drawn]
