"""From token ids to token ids, for data sets that are already tokenized."""

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy import _validate, columns
from hf_dxprivacy._immutable import Immutable
from hf_dxprivacy.budget import PrivacyBudget, checked
from hf_dxprivacy.errors import InvalidTypeError, InvalidValueError
from hf_dxprivacy.guarantees import PrivacyGuarantee, token_disclosures
from hf_dxprivacy.mechanisms import DEFAULT, Mechanism, required_index, resolve_mechanism
from hf_dxprivacy.randomness import row_streams
from hf_dxprivacy.reading import expense, once_each
from hf_dxprivacy.search.devices import CPU
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import TokenVocabulary, ids

# What a token is to a mechanism, if it is no row of the space: out of vocabulary, or no input.
_OUTSIDE = -1
_KEPT = -2


class TokenPrivatizer(Immutable):
    """Replaces the tokens of tokenized texts by other tokens, with metric differential privacy.

    Special tokens stay where they are, and no row changes its length, so attention masks and token
    types stay valid. The token for unknown words is not kept, since where it stands depends on the
    text: it is replaced, as is every token that the space lacks. A padding token that is the same
    one is replaced too.

    An instance goes straight into ``Dataset.map``, with ``batched=True`` or without, and with any
    ``num_proc``. It holds no generator, and of the tokenizer only tables of ids.

    >>> tokenizer = AutoTokenizer.from_pretrained("sentence-transformers/all-MiniLM-L6-v2")
    >>> space = EmbeddingSpace.from_transformers(
    ...     "sentence-transformers/all-MiniLM-L6-v2", subwords=True
    ... )
    >>> privatizer = TokenPrivatizer(space, tokenizer, epsilon=10.0)
    >>> tokenized = dataset.map(lambda batch: tokenizer(batch["text"]), batched=True)
    >>> released = tokenized.map(privatizer, batched=True).remove_columns("text")

    Args:
        space: An `EmbeddingSpace` whose words are tokens of the tokenizer, by their names in it,
            or the name of a stored one. `EmbeddingSpace.from_transformers` with ``subwords=True``
            makes one of all tokens; only those of the space ever come out.
        tokenizer: The tokenizer that made the ids: a `tokenizers.Tokenizer`, or one of
            `transformers` that is backed by it.
        mechanism: A name ("calibrated", "tem", "laplace", "mahalanobis", "hyperbolic"), or a
            `Mechanism` of the same space.
        epsilon: ε > 0, per unit of the mechanism's metric. Always your decision; no default.
        ids_column: The column to privatize.
        seed: None draws fresh noise. A whole number makes the result reproducible, whatever the
            batch size and ``num_proc``; it must then stay secret and be hard to guess, as
            ``secrets.randbits(128)`` is.
        device: As for `DxPrivatizer`.
        budget: A `PrivacyBudget` with unit "word" that is charged before anything is released; a
            token counts as a word.
        **options: The mechanism's own options, such as ``lam=`` for "mahalanobis".

    Raises:
        InvalidTypeError: If an argument is of the wrong type.
        InvalidValueError: If an argument is out of range or unknown, words of the space are no
            tokens, or the budget is one of users.
    """

    def __init__(
        self,
        space: EmbeddingSpace | str | Path,
        tokenizer: Any,
        mechanism: str | Mechanism = DEFAULT,
        epsilon: float | None = None,
        *,
        ids_column: str = "input_ids",
        seed: int | None = None,
        device: str = CPU,
        budget: PrivacyBudget | None = None,
        **options: Any,
    ) -> None:
        if seed is not None:
            _validate.at_least(0, "a seed is a whole number", seed=seed)
        if isinstance(space, (str, Path)):
            space = EmbeddingSpace.from_pretrained(space, index=required_index(mechanism, options))
        self.mechanism = resolve_mechanism(mechanism, space, epsilon, options, device)
        (self.ids_column,) = columns.names("ids_column", ids_column, 1)
        self.seed = None if seed is None else int(seed)
        self.budget = checked(budget, "word")
        self._rows = _rows_of_tokens(space, TokenVocabulary.of(tokenizer))

    def __getstate__(self) -> dict[str, Any]:
        derived = ("guarantee", "_release", "_tokens")
        return {name: value for name, value in self.__dict__.items() if name not in derived}

    def __repr__(self) -> str:
        settings = ", ".join(f"{k}={v!r}" for k, v in self.mechanism.parameters.items())
        return f"{type(self).__name__}({self.space!r}, {settings})"

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
        """What holds for each token that is not special, and what it rests on.

        Its `bound` takes two sequences of token ids.
        """
        bare = self.mechanism.guarantee
        return replace(
            bare,
            unit="token",
            assumptions=(*bare.assumptions, *token_disclosures(self.seed is not None)),
            log_ratio_bound=self._bound,
        )

    def __call__(self, examples: Any, indices: Any = None, rank: int | None = None) -> Any:
        """Privatize one example or a batch, as `Dataset.map` hands them over.

        Args:
            examples: A row or a batch: a dict (of lists, arrays or tensors), or a table of pandas,
                polars or Arrow.
            indices: The row index or indices, with ``with_indices=True``; used with a seed,
                and by a budget.
            rank: The worker's number, with ``with_rank=True`` beside it; not used.

        Returns:
            The column of ids; for a table, the table with it.

        Raises:
            InvalidValueError: If the column is missing, or an id out of range.
            BudgetExceededError: If the budget does not suffice. Nothing is released then.
            InvalidTypeError: If a cell holds no ids.
        """
        del rank
        name = self.ids_column
        columns.require(examples, {name: "ids_column="}, "privatize_ids() for ids")
        table = columns.is_table(examples)
        cells = columns.read(examples, [name])[name] if table else examples[name]
        single = ids.is_row(cells) if indices is None else isinstance(indices, Integral)
        if single and not table:
            key = None if indices is None else [indices]
            return {name: ids.row_like(self._privatized([cells], key)[0], cells)}
        keys = columns.row_keys(indices, len(cells), table)
        released = ids.like(self._privatized(cells, keys), cells)
        return columns.write(examples, {name: released}, {name: name})

    def privatize_ids(self, token_ids: Any) -> Any:
        """Privatize a sequence of token ids, or a batch of them.

        Args:
            token_ids: Whole numbers, as a list, an array or a tensor; or a list of such rows, which
                may differ in length (None passes through), or a 2-D array or tensor.

        Returns:
            The released ids in the same form.

        Raises:
            InvalidTypeError: If it is neither.
            InvalidValueError: If an id is out of range.
        """
        if ids.is_row(token_ids):
            return ids.row_like(self._privatized([token_ids], None)[0], token_ids)
        return ids.like(self._privatized(token_ids, None), token_ids)

    def _privatized(self, cells: Any, keys: Sequence[int] | None) -> list[ids.Ids | None]:
        given = [self._read(cell, at, keys) for at, cell in enumerate(cells)]
        if self.budget is not None:
            uses = once_each(len(given), keys)
            self.budget.charge([expense(self.mechanism, self.ids_column, uses)])
        arrays = [np.empty(0, np.int64) if row is None else row for row in given]
        inputs = [self._rows[row] for row in arrays]
        streams = row_streams(
            self.seed,
            (self._release, self.ids_column),
            [(row.tobytes().hex(),) for row in arrays],
            keys,
            [np.count_nonzero(rows != _KEPT) for rows in inputs],
        )
        # The empty array is for a batch without rows.
        flat = np.concatenate([np.empty(0, np.int64), *inputs])
        released = np.concatenate([np.empty(0, np.int64), *arrays])
        drawn = flat != _KEPT
        released[drawn] = self._tokens[self.mechanism.sample(flat[drawn], streams)]
        ends = np.cumsum([len(row) for row in arrays], dtype=np.int64)
        parts = np.split(released, ends)[:-1]
        return [None if row is None else part for row, part in zip(given, parts, strict=True)]

    def _read(self, cell: Any, position: int, keys: Sequence[int] | None) -> ids.Ids | None:
        try:
            return ids.read_row(cell, len(self._rows))
        except (InvalidTypeError, InvalidValueError) as error:
            where = f"{position} of the batch" if keys is None else str(keys[position])
            raise type(error)(f"column {self.ids_column!r}, row {where}: {error}") from None

    @cached_property
    def _tokens(self) -> ids.Ids:
        """(V,) the token of each row of the space."""
        tokens = np.flatnonzero(self._rows >= 0)
        return tokens[np.argsort(self._rows[tokens])]

    @cached_property
    def _release(self) -> str:
        """All that decides what is drawn, for which token and by which law."""
        tokens = hashlib.sha256(self._rows.tobytes()).hexdigest()
        return json.dumps([self.space.digest, self.mechanism.law, tokens])

    def _bound(self, ids_a: Any, ids_b: Any) -> float:
        """Bound the log-ratio of two sequences of ids; see `PrivacyGuarantee.bound`."""
        first, second = (self._visible(token_ids) for token_ids in (ids_a, ids_b))
        if not np.array_equal(first[0], second[0]):
            return math.inf
        return self.mechanism.id_bound(first[1], second[1])

    def _visible(self, token_ids: Any) -> tuple[ids.Ids, ids.Ids]:
        """Return the ids with a gap for each token drawn anew, and the inputs of those."""
        row = ids.read_row(token_ids, len(self._rows))
        if row is None:
            raise InvalidTypeError("expected two sequences of token ids, got a missing one")
        rows = self._rows[row].astype(np.int64)
        return np.where(rows == _KEPT, row, -1), rows[rows != _KEPT]


def _rows_of_tokens(space: EmbeddingSpace, vocabulary: TokenVocabulary) -> NDArray[np.int32]:
    """Return for each token its row of the space, `_OUTSIDE` or `_KEPT`."""
    ordinary = vocabulary.ordinary
    missing = sum(word not in ordinary for word in space.words)
    if missing:
        raise InvalidValueError(
            f"expected the words of the space to be tokens of the tokenizer, but {missing} of "
            f"{len(space)} are not; make the space with EmbeddingSpace.from_transformers and "
            "subwords=True, from the model that the tokenizer belongs to"
        )
    rows = np.full(max(vocabulary.strings) + 1, _OUTSIDE, dtype=np.int32)
    rows[sorted(vocabulary.special - {vocabulary.unknown})] = _KEPT
    rows[[ordinary[word] for word in space.words]] = np.arange(len(space))
    return rows
