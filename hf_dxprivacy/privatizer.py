"""From rows to rows: the object that goes into `Dataset.map`."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

from hf_dxprivacy import _validate, columns
from hf_dxprivacy.budget import PrivacyBudget, checked
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.mechanisms import DEFAULT, FLAT, Mechanism, required_index, resolve_mechanism
from hf_dxprivacy.memo import Memo, Memoize
from hf_dxprivacy.plan import Case, OutOfVocabulary, WordCounts
from hf_dxprivacy.promise import PromisingPrivatizer
from hf_dxprivacy.reading import Mask, Reading, RowKeys, checked_user_column
from hf_dxprivacy.search.devices import CPU
from hf_dxprivacy.settings import Settings, SpaceReference
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import Cell, Row, fill, stop_words


class DxPrivatizer(PromisingPrivatizer):
    """Replaces the words of texts by other words, with a metric differential privacy guarantee.

    An instance goes straight into ``Dataset.map``, with ``batched=True`` or without, and with any
    ``num_proc``. It holds no generator: every process draws from its own key. Its fingerprint is
    stable, so a second ``map`` over the same data returns the cached release and no second one.

    Args:
        space: An `EmbeddingSpace`, the name of a built-in one, a folder, or a repository.
        mechanism: A name ("calibrated", "tem", "laplace", "mahalanobis", "hyperbolic"), or a
            `Mechanism` of the same space.
        epsilon: ε > 0, per unit of the mechanism's metric. Always your decision; no default.
        text_column: The column to privatize, or several. A cell is a text or a list of tokens; see
            docs/columns.md.
        output_column: Where the result goes, as many as text columns; by default the text columns
            are overwritten.
        stopwords: Words released as they are: None, "english", or any words.
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
        device: Where they compute: "cpu", or "cuda" or "cuda:1" with the extra ``gpu``.
        memoize: For data that are released again and again. "row": rows with the same words always
            become the same words, whatever else is in the data. "user": a word of a user always
            becomes the same word. What is equal then shows; see docs/repeated-releases.md.
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

    def __init__(
        self,
        space: "EmbeddingSpace | str | Path",
        mechanism: "str | Mechanism" = DEFAULT,
        epsilon: float | None = None,
        *,
        text_column: str | Sequence[str] = "text",
        output_column: str | Sequence[str] | None = None,
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
        _validate.one_of((None, False, True), is_split_into_words=is_split_into_words)
        _validate.one_of(("centroid", "drop", "keep"), oov=oov)
        _validate.one_of(("lower", "preserve"), case=case)
        if seed is not None:
            _validate.at_least(0, "a seed is a whole number", seed=seed)
        if index != FLAT:
            options["index"] = index
        if isinstance(space, (str, Path)):
            space = EmbeddingSpace.from_pretrained(space, index=required_index(mechanism, options))
        self.mechanism = resolve_mechanism(mechanism, space, epsilon, options, device)
        self.text_columns = columns.names("text_column", text_column)
        self.output_columns = (
            self.text_columns
            if output_column is None
            else columns.names("output_column", output_column, len(self.text_columns))
        )
        self.is_split_into_words = is_split_into_words
        self.stopwords = stop_words(stopwords, tokens=bool(is_split_into_words))
        self.oov = oov
        self.case = case
        self.seed = None if seed is None else int(seed)
        self.memo = Memo.of(memoize, key, seed)
        self.budget = checked(budget, "word", "user")
        self.user_column = checked_user_column(user_column, memoize, budget)
        self.index = self.mechanism.parameters.get("index", FLAT)
        self.device = self.mechanism.device

    def __getstate__(self) -> dict[str, Any]:
        derived = ("guarantee", "_law", "_reader", "_settings")
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
            examples: A row or a batch: a dict (of lists), or a table of pandas, polars or Arrow.
            indices: The row index or indices, with ``with_indices=True``; used with a seed,
                and by a budget.
            rank: The worker's number, with ``with_rank=True`` beside it; not used.

        Returns:
            The output columns; for a table, the table with them.

        Raises:
            InvalidValueError: If a column is missing or would be lost, or a row lacks its user.
            BudgetExceededError: If the budget does not suffice. Nothing is released then.
            InvalidTypeError: If a cell is neither text, tokens nor missing.
        """
        del rank
        columns.require(examples, self._inputs)
        columns.require_new(examples, self._sources, self.text_columns)
        table = columns.is_table(examples)
        split = self.is_split_into_words
        if not table and columns.is_single(examples, self.text_columns, indices, split):
            row = {name: [examples[name]] for name in self._inputs}
            key = None if indices is None else [indices]
            return {name: cells[0] for name, cells in self._columns(row, key).items()}
        if not table and indices is None and self._must_tell_rows_from_batches:
            columns.require_clear(examples, self.text_columns)
        batch = columns.read(examples, self._inputs)
        keys = columns.row_keys(indices, len(batch[self.text_columns[0]]), table)
        return columns.write(examples, self._columns(batch, keys), self._sources)

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
            keys: Row indices, for seeded noise and for a budget.

        Returns:
            The released cells and the counts. Only the cells are covered by the guarantee.
        """
        read = self._read(cells, column, RowKeys(keys))
        self._charge([read])
        released, counts = self._replaced(read)
        return fill(read.rows, released), counts

    def _columns(
        self, batch: columns.Columns, indices: Sequence[int] | None
    ) -> dict[str, list[Any]]:
        keys = RowKeys.of(batch, indices, self.user_column)
        read = [self._read(batch[name], name, keys, batch) for name in self.text_columns]
        self._charge(read)
        result: dict[str, list[Any]] = {}
        for at, each in enumerate(read):
            result |= self._shown(at, each, self._replaced(each)[0])
        return result

    def _read(
        self,
        cells: Sequence[Any],
        column: str,
        keys: RowKeys,
        batch: columns.Columns | None = None,
    ) -> Reading:
        if self.user_column is not None and keys.users is None:
            raise InvalidValueError(
                f"nobody knows whose these texts are: pass rows with the column "
                f"{self.user_column!r} to the privatizer itself, as dataset.map(privatizer) does"
            )
        rows = self._reader.read_column(cells, column, keys.indices)
        masks = self._masks(rows, batch)
        return Reading.of(column, keys, rows, masks, self.space, self.stopwords, self.oov)

    def _masks(
        self, rows: Sequence[Row | None], batch: columns.Columns | None
    ) -> Sequence[Mask | None] | None:
        """Return for each row which of its words may be drawn; None if all may."""
        del rows, batch
        return None

    def _charge(self, read: Sequence[Reading]) -> None:
        if self.budget is not None:
            self.budget.charge([each.expense(self.mechanism, self.budget.unit) for each in read])

    def _replaced(self, read: Reading) -> tuple[list[list[str | None]], WordCounts]:
        """Return for each row what takes the place of its words."""
        if self.memo is None:
            streams = read.streams(self.seed, self._settings)
            outputs = self.mechanism.sample(read.plan.ids[read.plan.drawn], streams)
        else:
            outputs = self.memo.draw(
                self.mechanism.sample, self._law, read.inputs, read.keys.users or ()
            )
        plan, vocabulary = read.plan, self.space.words
        released = plan.released(read.words, outputs, vocabulary, self.oov, self.case)
        return read.by_row(released), plan.counts(outputs)

    def _shown(
        self, at: int, read: Reading, released: Sequence[Sequence[str | None]]
    ) -> dict[str, list[Any]]:
        """Return the output columns of the text column at a place."""
        return {self.output_columns[at]: fill(read.rows, released)}

    @property
    def _must_tell_rows_from_batches(self) -> bool:
        """Whether the tokens of one row come out otherwise than as many texts of one word."""
        # A row has one user, so a column of them is a batch.
        matters = self.seed is not None or self.memo is not None or self.oov == "drop"
        return matters and self.user_column is None and self.is_split_into_words is None

    @property
    def _inputs(self) -> dict[str, str]:
        """All columns that are read, and what each is given as."""
        owner = {} if self.user_column is None else {self.user_column: "user_column="}
        return owner | dict.fromkeys(self.text_columns, "text_column=")

    @property
    def _sources(self) -> dict[str, columns.Source]:
        """Where each output column has its type from."""
        return dict(zip(self.output_columns, self.text_columns, strict=True))
