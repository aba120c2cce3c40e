"""`TokenPrivatizer`: token ids in, token ids out, for data sets that are already tokenized."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from hf_dxprivacy import randomness
from hf_dxprivacy._runtime import CPU, lazy_property, require
from hf_dxprivacy.errors import ArtifactError, InvalidTypeError, InvalidValueError
from hf_dxprivacy.guarantee import TOKEN, PrivacyGuarantee
from hf_dxprivacy.hub import ArtifactSource, fetch
from hf_dxprivacy.mechanisms import Mechanism
from hf_dxprivacy.privatizers.batch import EncodedColumn, Ids, RowIds
from hf_dxprivacy.privatizers.budget import PrivacyBudget
from hf_dxprivacy.privatizers.config import PrivatizerConfig
from hf_dxprivacy.privatizers.dataset_formats import DatasetBatch, SingleRow, column_names
from hf_dxprivacy.privatizers.disclosures import EQUAL_ROWS, of_tokens
from hf_dxprivacy.privatizers.keyed_noise import noise_source
from hf_dxprivacy.privatizers.privatizer import Privatizer
from hf_dxprivacy.spaces import EmbeddingSpace
from hf_dxprivacy.text import TokenVocabulary, token_vocabulary

# Rows of the space for tokens that are none: out of vocabulary, or not perturbed.
_OUTSIDE = -1
KEPT = -2


@dataclass(frozen=True, eq=False, repr=False)
class EncodedTokens(EncodedColumn):
    """A column of token ids.

    Attributes:
        rows: The ids of each row; None for a missing one.
    """

    rows: Sequence[Ids | None]

    @classmethod
    def encode(
        cls, name: str, rows: Sequence[Ids | None], row_ids: RowIds, table: NDArray[np.int32]
    ) -> "EncodedTokens":
        """Look up token ids in a table of their rows of the space."""
        offsets = [*accumulate((0 if row is None else len(row) for row in rows), initial=0)]
        ids = table[joined(rows)].astype(np.int64)
        return cls(name, row_ids, offsets, ids, ids != KEPT, rows)

    def contents(self) -> Iterator[Sequence[str]]:
        """Return for each row its ids."""
        for row in self.rows:
            yield ("" if row is None else row.tobytes().hex(),)

    def visible(self, row: int) -> list[Any]:
        """Return the tokens that are kept, and None for each that is drawn anew."""
        part = slice(*self.offsets[row : row + 2])
        cell = self.rows[row]
        assert cell is not None
        pairs = zip(cell.tolist(), self.perturbed[part].tolist(), strict=True)
        return [None if perturbed else token for token, perturbed in pairs]

    def decode(self, outputs: Ids, tokens: Ids) -> list[Ids | None]:
        """Return the released rows, given the outputs and the token of each row of the space."""
        released = joined(self.rows)
        released[self.perturbed] = tokens[outputs]
        parts = np.split(released, self.offsets[1:])[:-1]
        pairs = zip(self.rows, parts, strict=True)
        return [None if row is None else part for row, part in pairs]


def joined(rows: Sequence[Ids | None]) -> Ids:
    """Return the ids of all rows in one array."""
    # The empty array is for a batch without rows.
    return np.concatenate([np.empty(0, np.int64), *(row for row in rows if row is not None)])


class TokenPrivatizer(Privatizer):
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
    >>> privatizer = TokenPrivatizer(space, tokenizer, "calibrated", 10.0)
    >>> tokenized = dataset.map(lambda batch: tokenizer(batch["text"]), batched=True)
    >>> released = tokenized.map(privatizer, batched=True).remove_columns("text")

    Args:
        space: An `EmbeddingSpace` whose words are tokens of the tokenizer, by their names in it,
            or the name of a stored one. `EmbeddingSpace.from_transformers` with ``subwords=True``
            makes one of all tokens; only those of the space ever come out.
        tokenizer: The tokenizer that made the ids: a `tokenizers.Tokenizer`, or one of
            `transformers` that is backed by it.
        mechanism: As for `DxPrivatizer`.
        epsilon: ε > 0, per unit of the mechanism's metric. Always your decision; no default.
        local_epsilon: As for `DxPrivatizer`, of any two tokens.
        ids_column: The column to privatize.
        seed: As for `DxPrivatizer`.
        device: As for `DxPrivatizer`.
        budget: A `PrivacyBudget` with unit "word" that is charged before anything is released; a
            token counts as a word.
        **options: The mechanism's own options, such as ``lam=`` for "mahalanobis".

    Raises:
        InvalidTypeError: If an argument is of the wrong type.
        InvalidValueError: If an argument is out of range or unknown, words of the space are no
            tokens, or the budget is one of users.
    """

    _owner = "TokenPrivatizer"
    _runtime_arguments = ("tokenizer", "ids_column", "seed", "device", "budget")
    _derived = (*Privatizer._derived, "_tokens")

    def __init__(
        self,
        space: EmbeddingSpace | str | Path,
        tokenizer: Any = None,
        mechanism: str | Mechanism | None = None,
        epsilon: float | None = None,
        *,
        local_epsilon: float | None = None,
        ids_column: str = "input_ids",
        seed: int | None = None,
        device: str = CPU,
        budget: PrivacyBudget | None = None,
        **options: Any,
    ) -> None:
        if tokenizer is None:
            raise InvalidTypeError(
                "tokenizer is missing: pass the tokenizer that made the ids, a "
                "tokenizers.Tokenizer or one of transformers"
            )
        noise = noise_source(seed, None, None)
        given = space, mechanism, epsilon, options, device, noise, budget
        self._set_up(*given, ("word",), local_epsilon)
        (self.ids_column,) = column_names("ids_column", ids_column, 1)
        vocabulary = TokenVocabulary.of(tokenizer)
        ordinary = vocabulary.ordinary
        missing = sum(word not in ordinary for word in self.space.words)
        if missing:
            raise InvalidValueError(
                "expected the words of the space to be tokens of the tokenizer, but "
                f"{missing} of {len(self.space)} are not; make the space with "
                "EmbeddingSpace.from_transformers and subwords=True, from the model that the "
                "tokenizer belongs to"
            )
        # For each token its row of the space, `_OUTSIDE` or `KEPT`.
        self._rows = np.full(max(vocabulary.strings) + 1, _OUTSIDE, dtype=np.int32)
        self._rows[sorted(vocabulary.special - {vocabulary.unknown})] = KEPT
        self._rows[[ordinary[word] for word in self.space.words]] = np.arange(len(self.space))
        name = getattr(tokenizer, "name_or_path", "")
        if name and Path(name).is_dir():
            name = str(Path(name).resolve())
        self._tokenizer = {"name": name or None, "digest": _digest(vocabulary)}

    @lazy_property
    def guarantee(self) -> PrivacyGuarantee:
        """Guarantee for each token that is not special, and what it rests on.

        Its `bound` takes two sequences of token ids.
        """
        law = self.mechanism
        return replace(
            law.guarantee,
            unit="token",
            disclosures=(*law.disclosures(TOKEN), *of_tokens(self)),
            among="" if self.seed is None else EQUAL_ROWS,
            log_ratio_bound=self._bound,
        )

    def __call__(self, examples: Any, indices: Any = None, rank: int | None = None) -> Any:
        """Privatize one example or a batch, as `Dataset.map` hands them over.

        Args:
            examples: As for `DxPrivatizer`; cells are lists, arrays or tensors of ids.
            indices: As for `DxPrivatizer`.
            rank: As for `DxPrivatizer`.

        Returns:
            The column of ids; for a table, the table with it.

        Raises:
            InvalidValueError: If the column is missing, or an id out of range.
            BudgetExceededError: If the budget does not suffice. Nothing is released then.
            InvalidTypeError: If a cell holds no ids.
        """
        del rank
        name = self.ids_column
        batch = DatasetBatch.of(examples, "privatize_ids() for ids")
        batch.require({name: "ids_column="})
        cells = batch.column(name) if batch.is_table else examples[name]
        if not batch.is_table and (
            token_vocabulary.is_row(cells) if indices is None else isinstance(indices, Integral)
        ):
            batch, cells = SingleRow(examples, batch.names), [cells]
        row_ids = RowIds(batch.row_indices(indices, len(cells)))
        released = token_vocabulary.like(self._privatized(cells, row_ids), cells)
        return batch.with_columns({name: released}, {name: name})

    @property
    def released_columns(self) -> dict[str, str]:
        """See base class."""
        return {self.ids_column: self.ids_column}

    def _settings(self) -> dict[str, Any]:
        if self._tokenizer["name"] is None:
            raise InvalidValueError(
                "the tokenizer has no name or path, so nothing can refer to it; save it as one of "
                "transformers, load it from there with AutoTokenizer.from_pretrained, and make the "
                "privatizer with that"
            )
        return {"ids_column": self.ids_column, "tokenizer": dict(self._tokenizer)}

    @classmethod
    def _load(cls, source: ArtifactSource, arguments: dict[str, Any]) -> "TokenPrivatizer":
        privatizer = super()._load(source, arguments)
        # A tokenizer may not know the name that it was saved with.
        stored = PrivatizerConfig.read(source.folder, cls._owner)
        privatizer._tokenizer = stored.settings["tokenizer"]
        return privatizer

    @classmethod
    def _load_parts(
        cls, stored: PrivatizerConfig, source: ArtifactSource, arguments: Mapping[str, Any]
    ) -> dict[str, Any]:
        name, digest = stored.settings["tokenizer"]["name"], stored.settings["tokenizer"]["digest"]
        tokenizer, options = arguments.get("tokenizer"), source.options
        if tokenizer is None:
            local = Path(name)
            at = local if local.is_dir() else fetch(name, ("tokenizer.json",), None, options)[0]
            tokenizer = Tokenizer.from_file(str(at / "tokenizer.json"))
            if _digest(TokenVocabulary.of(tokenizer)) != digest:
                # Special tokens may be named in other files.
                tokenizer = require("transformers", "models").AutoTokenizer.from_pretrained(
                    name, cache_dir=options.cache_dir, local_files_only=options.local_files_only
                )
        if _digest(TokenVocabulary.of(tokenizer)) != digest:
            raise ArtifactError(
                f"the tokenizer {name!r} has another vocabulary than the one that the privatizer "
                "was saved with; make a new privatizer"
            )
        return {"tokenizer": tokenizer}

    def _check_publishable(self, license: str | None) -> None:
        super()._check_publishable(license)
        if Path(self.config.settings["tokenizer"]["name"]).is_dir():
            raise InvalidValueError(
                "the tokenizer is in a local folder, where no other machine finds it; push it, "
                "load it from the Hub, and make the privatizer with that"
            )

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
        if token_vocabulary.is_row(token_ids):
            released = self._privatized([token_ids], RowIds())[0]
            return token_vocabulary.row_like(released, token_ids)
        return token_vocabulary.like(self._privatized(token_ids, RowIds()), token_ids)

    def _privatized(self, cells: Any, row_ids: RowIds) -> list[Ids | None]:
        size = len(self._rows)
        rows = row_ids.read(cells, self.ids_column, partial(token_vocabulary.read_row, size=size))
        column = EncodedTokens.encode(self.ids_column, rows, row_ids, self._rows)
        if self.budget is not None:
            self.budget.charge([column.expense(self.mechanism, "word")])
        if self._noise is None:
            outputs = self.mechanism.sample(column.inputs, randomness.process_generator())
        else:
            outputs = self._noise.draw(self.mechanism, column, lambda: self._context)
        return column.decode(outputs, self._tokens)

    @lazy_property
    def _tokens(self) -> Ids:
        """(V,) the token of each row of the space."""
        tokens = np.flatnonzero(self._rows >= 0)
        return tokens[np.argsort(self._rows[tokens])]

    @lazy_property
    def _context(self) -> str:
        """The stream context: all on which the law of an output depends, bound to the seed."""
        tokens = hashlib.sha256(self._rows.tobytes()).hexdigest()
        return json.dumps([self.space.digest, self.mechanism.noise_parameters, tokens])

    def _bound(self, ids_a: Any, ids_b: Any) -> float:
        """Bound the log-ratio of two sequences of ids; see `PrivacyGuarantee.bound`."""
        rows = [token_vocabulary.read_row(ids, len(self._rows)) for ids in (ids_a, ids_b)]
        if any(row is None for row in rows):
            raise InvalidTypeError("expected two sequences of token ids, got a missing one")
        both = EncodedTokens.encode(self.ids_column, rows, RowIds(), self._rows)
        same = both.visible(0) == both.visible(1)
        return self.mechanism.id_bound(*both.row_inputs()) if same else math.inf


def _digest(vocabulary: TokenVocabulary) -> str:
    """Return a digest of all of a tokenizer that a privatizer depends on."""
    known = [[*vocabulary.strings.items()], sorted(vocabulary.special), vocabulary.unknown]
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()
