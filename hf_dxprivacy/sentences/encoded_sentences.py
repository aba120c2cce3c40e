"""Encoded columns of texts or sentences, each as an entry of a pool."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, compress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hf_dxprivacy.privatizers.batch import BINS, EncodedColumn, Ids, RowIds, TextCounts
from hf_dxprivacy.privatizers.nested import NestedRow, flat
from hf_dxprivacy.sentences import SentencePool


@dataclass(frozen=True, eq=False, repr=False)
class EncodedSentences(EncodedColumn):
    """A column of texts, each as one entry of a pool or as one for each of its sentences.

    Attributes:
        rows: For each cell what is looked up: the text, or its sentences; None for a missing one.
        cosines: (m,) between what is looked up and its entry.
        labels: For each row its label; None if the pool is not restricted by labels.
    """

    rows: Sequence[list[str] | NestedRow | None]
    cosines: NDArray[np.float64]
    labels: Sequence[str | None]

    @classmethod
    def encode(
        cls,
        name: str,
        rows: Sequence[list[str] | NestedRow | None],
        row_ids: RowIds,
        pools: Mapping[str | None, SentencePool],
        labels: Sequence[str | None],
    ) -> "EncodedSentences":
        """Look up texts or sentences, each in the pool of its row's label."""
        pieces = [*chain.from_iterable(row or () for row in rows)]
        lengths = [len(row or ()) for row in rows]
        of_pieces = np.repeat(np.array(labels, dtype=object), lengths)
        ids, cosines = np.empty(len(pieces), dtype=np.int64), np.empty(len(pieces))
        for label in dict.fromkeys(of_pieces.tolist()):
            places = np.flatnonzero(of_pieces == label)
            asked = [pieces[place] for place in places.tolist()]
            # Each text once: an encoder takes far longer than this.
            rows_of = {text: row for row, text in enumerate(dict.fromkeys(asked))}
            found, near = pools[label].nearest([*rows_of])
            again = [rows_of[text] for text in asked]
            ids[places], cosines[places] = found[again], near[again]
        offsets, all_drawn = [*accumulate(lengths, initial=0)], np.ones(len(pieces), dtype=np.bool_)
        return cls(name, row_ids, offsets, ids, all_drawn, rows, cosines, labels)

    def by_label(self) -> Iterator[tuple[str | None, Ids, "EncodedSentences"]]:
        """Return for each label the places of its rows' sentences, and a column of these rows."""
        lengths, ids = np.array(self.row_lengths, dtype=np.int64), self.row_ids
        for label in dict.fromkeys(self.labels):
            held = [label == other for other in self.labels]
            places = np.flatnonzero(np.repeat(held, lengths))
            column = replace(
                self,
                row_ids=RowIds(
                    None if ids.indices is None else [*compress(ids.indices, held)],
                    None if ids.users is None else [*compress(ids.users, held)],
                ),
                offsets=[*accumulate(lengths[held].tolist(), initial=0)],
                ids=self.ids[places],
                perturbed=self.perturbed[places],
                rows=[*compress(self.rows, held)],
                cosines=self.cosines[places],
                labels=[label] * sum(held),
            )
            yield label, places, column

    def counts(self) -> TextCounts:
        """Count texts and entries, and how far the texts are from these."""
        bins = np.clip((self.cosines[self.ids >= 0] + 1) * (BINS / 2), 0, BINS - 1).astype(np.int64)
        return TextCounts(
            texts=sum(text is not None for text in flat(self.rows)),
            total=len(self.ids),
            unknown=int((self.ids < 0).sum()),
            cosines=tuple(np.bincount(bins, minlength=BINS).tolist()),
            left=self.left,
        )

    def contents(self) -> Iterator[Sequence[str]]:
        """Return for each row its sentences."""
        for row in self.rows:
            yield [*(row or ())]

    def visible(self, row: int) -> list[Any]:
        """Return the number of sentences, of each text where there are several."""
        cell = self.rows[row]
        if isinstance(cell, NestedRow):
            return ["texts", *map(len, cell.texts)]
        return [len(cell or ())]


def joined(row: list[str] | NestedRow | None, new: list[str]) -> Any:
    """Return a released cell."""
    if isinstance(row, NestedRow):
        return row.detokenize(new, lambda _, sentences: " ".join(sentences))
    return None if row is None else " ".join(new)
