"""Is-a relations, their readers, and a split that holds some out."""

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from hf_dxprivacy._runtime import require
from hf_dxprivacy.errors import (
    ArtifactError,
    InvalidValueError,
    require_at_least,
    require_between,
    require_one_of,
)
from hf_dxprivacy.training.archives import find_files, read_parts
from hf_dxprivacy.training.wordnet import DEFAULT_PATH, Synset, is_word, read_senses, read_synsets

Key = tuple[str, int]


@dataclass(frozen=True, eq=False)
class Relations:
    """Distinct pairs of a node and something that it is a kind of.

    Attributes:
        nodes: N distinct names.
        pairs: (m, 2) int64 rows of `nodes`: the node, and its class. No two rows are equal.
    """

    nodes: tuple[str, ...]
    pairs: NDArray[np.int64]

    def __post_init__(self) -> None:
        if len(set(self.nodes)) != len(self.nodes):
            raise InvalidValueError("expected distinct nodes, got a name twice")
        if self.pairs.ndim != 2 or self.pairs.shape[1] != 2:
            raise InvalidValueError(f"expected pairs of shape (m, 2), got {self.pairs.shape}")
        if self.pairs.size and not 0 <= self.pairs.min() <= self.pairs.max() < len(self.nodes):
            raise InvalidValueError(
                f"expected pairs of rows from 0 to {len(self.nodes) - 1}, got "
                f"{self.pairs.min()} to {self.pairs.max()}"
            )

    @classmethod
    def from_names(cls, pairs: Iterable[tuple[str, str]], nodes: Iterable[str] = ()) -> "Relations":
        """Number the names of pairs.

        Args:
            pairs: (node, class) by name; repeated ones count once.
            nodes: Names to number first, whether or not a pair has them. The others follow in
                alphabetical order.
        """
        codes: dict[str, int] = {}
        ends = (codes.setdefault(name, len(codes)) for a, b in pairs for name in (a, b))
        coded = np.fromiter(ends, dtype=np.int64).reshape(-1, 2)
        first = dict.fromkeys(nodes)
        names = (*first, *sorted(codes.keys() - first.keys()))
        row = {name: number for number, name in enumerate(names)}
        rows = np.array([row[name] for name in codes], dtype=np.int64)[coded]
        distinct = np.unique(rows @ np.array([len(names), 1]))
        return cls(names, np.stack(np.divmod(distinct, max(1, len(names))), axis=1))

    def __len__(self) -> int:
        return len(self.pairs)

    def degrees(self) -> NDArray[np.int64]:
        """Return the number of pairs that each node takes part in, (N,)."""
        return np.bincount(self.pairs.ravel(), minlength=len(self.nodes))

    def among(self, names: Iterable[str]) -> "Relations":
        """Return the relations whose two ends have these names, without nodes left alone."""
        wanted = set(names)
        kept = np.array([name in wanted for name in self.nodes], dtype=bool)
        pairs = self.pairs[kept[self.pairs].all(axis=1)]
        used = np.unique(pairs)
        renumbered = np.full(len(self.nodes), -1)
        renumbered[used] = np.arange(len(used))
        return Relations(tuple(self.nodes[row] for row in used), renumbered[pairs])

    def below(self, name: str) -> "Relations":
        """Return the relations of a node and all that is below it, such as "mammal.n.01".

        Args:
            name: The node.

        Raises:
            InvalidValueError: If there is no such node, or nothing is below it.
        """
        if name not in self.nodes:
            near = difflib.get_close_matches(name, self.nodes, 3)
            hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise InvalidValueError(f"expected one of {len(self.nodes)} nodes, got {name!r}{hint}")
        found, size = np.array([self.nodes.index(name)]), 0
        while len(found) > size:
            size = len(found)
            found = np.union1d(found, self.pairs[np.isin(self.pairs[:, 1], found), 0])
        if size == 1:
            raise InvalidValueError(f"nothing is below {name!r}; name a class that has members")
        return self.among(self.nodes[row] for row in found)

    def components(self) -> NDArray[np.int64]:
        """Return which part each node belongs to, (N,); no relation leads from part to part.

        Parts are numbered from 0 by their number of nodes, the largest first.

        Raises:
            MissingExtraError: If SciPy is not installed.
        """
        require("scipy", "train")
        from scipy import sparse

        ends = (self.pairs[:, 0], self.pairs[:, 1])
        size = (len(self.nodes), len(self.nodes))
        links = sparse.coo_array((np.ones(len(self)), ends), shape=size)
        _, parts = sparse.csgraph.connected_components(links, directed=False)
        by_size = np.argsort(-np.bincount(parts), kind="stable")
        numbers: NDArray[np.int64] = np.argsort(by_size)[parts]
        return numbers

    def largest_component(self) -> "Relations":
        """Return the relations of the part with the most nodes; see `components`."""
        kept = self.components() == 0
        return self.among(name for name, is_kept in zip(self.nodes, kept, strict=True) if is_kept)

    def reversed(self) -> "Relations":
        """Return each pair the other way round."""
        return Relations(self.nodes, np.ascontiguousarray(self.pairs[:, ::-1]))

    def joined(self, other: "Relations") -> "Relations":
        """Return the pairs of both, each once.

        Raises:
            InvalidValueError: If the two do not have the same nodes.
        """
        if self.nodes != other.nodes:
            raise InvalidValueError("expected relations over the same nodes in the same order")
        return Relations(self.nodes, np.unique(np.concatenate((self.pairs, other.pairs)), axis=0))

    def direct(self) -> "Relations":
        """Return the pairs with nothing between them, the transitive reduction of a closure.

        Nodes that are each below the other do not stand between the same nodes.
        """
        above: dict[int, set[int]] = {}
        for node, top in self.pairs.tolist():
            above.setdefault(node, set()).add(top)
        nothing: set[int] = set()

        def is_between(middle: int, node: int, top: int) -> bool:
            higher = above.get(middle, nothing)
            mutual = node in higher or middle in above.get(top, nothing)
            return middle != top and top in higher and not mutual

        kept = [
            not any(is_between(middle, node, top) for middle in above[node])
            for node, top in self.pairs.tolist()
        ]
        return Relations(self.nodes, self.pairs[np.array(kept, dtype=bool)])


def read_wordnet(
    path: str | Path = DEFAULT_PATH,
    nodes: str = "synsets",
    closure: bool = True,
    max_senses: int | None = None,
) -> Relations:
    """Read the is-a hierarchy of WordNet's nouns, hypernyms and instance hypernyms alike.

    Args:
        path: Folder of the WordNet database files, in Debian brought by ``wordnet-base``.
        nodes: "synsets", named like ``dog.n.01``: lemma, part of speech and number of the sense.
            "words", the single-word lemmas in lower case: one word is below another if one of its
            senses is below one of the other's. Words with several senses then have all their
            classes, and two words may each be below the other.
        closure: Whether a node is paired with everything above it or only what is directly above.
        max_senses: With words, how many senses of each to use, the most frequent first; all by
            default. Rare senses put a word below classes that few readers expect.

    Returns:
        The relations. With synsets of WordNet 3.0 and the closure these are the 743,241 relations
        over 82,115 nodes of Nickel & Kiela, "Poincaré embeddings" (NIPS 2017).

    Raises:
        ArtifactError: If a file is missing or malformed, or the hierarchy has a cycle.
    """
    require_one_of(("synsets", "words"), nodes=nodes)
    if max_senses is not None:
        require_at_least(1, max_senses=max_senses)
    synsets = {synset.key: synset for synset in read_synsets(path, ("noun",))}
    above = {key: tuple(dict.fromkeys(synset.hypernyms())) for key, synset in synsets.items()}
    if closure:
        above = _closure(above, Path(path) / "data.noun")
    senses = _sense_numbers(synsets, Path(path) / "index.noun")
    if nodes == "synsets":
        first = {key: next(iter(numbers.items())) for key, numbers in senses.items()}
        names = {key: f"{lemma}.n.{number:02d}" for key, (lemma, number) in first.items()}
        pairs = ((names[key], names[top]) for key, tops in above.items() for top in tops)
        return Relations.from_names(pairs, nodes=names.values())
    most = max_senses or len(synsets)
    words = {
        key: [word for word, number in numbers.items() if number <= most and is_word(word)]
        for key, numbers in senses.items()
    }
    return Relations.from_names(
        (word, higher)
        for key, tops in above.items()
        for top in tops
        for word in words[key]
        for higher in words[top]
        if word != higher
    )


def _closure(above: Mapping[Key, tuple[Key, ...]], file: Path) -> dict[Key, tuple[Key, ...]]:
    try:
        order = list(TopologicalSorter(above).static_order())
    except CycleError as error:
        raise ArtifactError(f"{file}: {error.args[1][0][1]:08d} is above itself") from error
    closed: dict[Key, tuple[Key, ...]] = {}
    for key in order:
        higher = (top for direct in above[key] for top in closed[direct])
        closed[key] = tuple(dict.fromkeys((*above[key], *higher)))
    return closed


def _sense_numbers(synsets: Mapping[Key, Synset], file: Path) -> dict[Key, dict[str, int]]:
    """Return for each synset its lemmas, in order and lower case, with the number of the sense."""
    senses = read_senses(file.parent, "noun")
    numbers: dict[Key, dict[str, int]] = {}
    for key, synset in synsets.items():
        for lemma in map(str.lower, synset.lemmas):
            try:
                number = senses[lemma].index(key[1]) + 1
            except (KeyError, ValueError) as error:
                raise ArtifactError(
                    f"{file} does not list {lemma!r} with offset {key[1]:08d}; it belongs to "
                    "another version than data.noun"
                ) from error
            numbers.setdefault(key, {})[lemma] = number
    return numbers


def split_relations(
    relations: Relations, share: float = 0.05, seed: int = 0
) -> tuple[Relations, Relations]:
    """Hold relations out at random without leaving nodes alone or taking a part off the others.

    Args:
        relations: All relations.
        share: How many to hold out, as a share of all.
        seed: Of the draw.

    Returns:
        The relations to train on, by which nodes are joined, perhaps through others, that were
        joined before, and those held out. Both have all nodes.

    Raises:
        InvalidValueError: If fewer than the share can be held out, or none.
        MissingExtraError: If SciPy is not installed.
    """
    require_between(0.0, 1.0, share=share)
    require_at_least(0, seed=seed)
    require("scipy", "train")
    from scipy import sparse

    wanted = round(share * len(relations))
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(relations))
    # Of two relations between the same nodes the tree can have one.
    ends, first = np.unique(np.sort(relations.pairs[rows], axis=1), axis=0, return_index=True)
    # Algorithms on graphs of older releases of SciPy (1.13) take indices of 32 bits only.
    ends = ends.astype(np.int32)
    size = (len(relations.nodes), len(relations.nodes))
    links = sparse.coo_array((first + 1.0, (ends[:, 0], ends[:, 1])), shape=size)
    # A random tree over each part is kept, and all others may go.
    tree = sparse.csgraph.minimum_spanning_tree(links)
    spare = np.setdiff1d(np.arange(len(relations)), rows[tree.data.astype(np.int64) - 1])
    if not wanted or len(spare) < wanted:
        raise InvalidValueError(
            f"expected to hold out {wanted} of {len(relations)} relations (share={share}), but "
            f"{len(spare)} can be spared; choose another share"
        )
    held = np.zeros(len(relations), dtype=bool)
    held[rng.choice(spare, wanted, replace=False)] = True
    kept = Relations(relations.nodes, relations.pairs[~held])
    return kept, Relations(relations.nodes, relations.pairs[held])


_BLOCK = 1 << 22


def read_pairs(path: str | Path, *, progress: bool = True) -> Relations:
    """Read pairs of a node and its class, one a line with a tab between them.

    Args:
        path: A file in UTF-8, plain or compressed, or a folder of such files. Empty lines are
            skipped, and there is no header.
        progress: Show a progress bar.

    Returns:
        The relations, each once, with the names as they are written.

    Raises:
        ArtifactError: If a file is missing or damaged, or a line is not a pair.
    """
    pairs: set[tuple[str, str]] = set()
    for where, fields in _rows(path, progress):
        if len(fields) != 2 or not all(fields):
            raise ArtifactError(f"{where}: expected a node, a tab and its class")
        pairs.add((fields[0], fields[1]))
    return Relations.from_names(pairs)


def read_conceptnet(
    path: str | Path, relation: str = "IsA", language: str = "en", *, progress: bool = True
) -> Relations:
    """Read one relation of ConceptNet 5 among terms of one language.

    Args:
        path: The file of assertions, plain or compressed: lines of an identifier, the relation
            (``/r/IsA``), its start (``/c/en/dog/n``), its end and more, with tabs between them.
        relation: Name of a relation that leads from a node to its class.
        language: Code of the language.
        progress: Show a progress bar.

    Returns:
        The relations between terms without their senses, underscores between the parts of a term.
        Pairs of a term with itself are left out. `Relations.among` keeps those of a vocabulary.

    Raises:
        ArtifactError: If a file is missing or damaged, or a line is not such an assertion.
    """
    pairs: set[tuple[str, str]] = set()
    term = f"/c/{language}/"
    for where, fields in _rows(path, progress):
        if len(fields) < 4 or not fields[1].startswith("/r/"):
            raise ArtifactError(
                f"{where}: expected an identifier, a relation such as /r/IsA, its start and its "
                "end, with tabs between them"
            )
        _, kind, *ends = fields[:4]
        if kind == f"/r/{relation}" and all(end.startswith(term) for end in ends):
            node, above = (end.split("/")[3] for end in ends)
            if node != above:
                pairs.add((node, above))
    return Relations.from_names(pairs)


def _rows(path: str | Path, progress: bool) -> Iterator[tuple[str, list[str]]]:
    """Yield the fields of the lines that are not empty, each behind its place for messages."""
    files = find_files(path)
    size = sum(file.stat().st_size for file in files)
    with tqdm(total=size, unit="B", unit_scale=True, disable=not progress) as bar:
        for part in read_parts(files, bar):
            rows = (row for block in part.blocks(_BLOCK) for row in block.split(b"\n")[:-1])
            for number, row in enumerate(rows, start=1):
                where = f"{part.name}, line {number}"
                try:
                    line = row.decode().rstrip("\r")
                except UnicodeDecodeError as error:
                    raise ArtifactError(f"{where}: not UTF-8; convert the file") from error
                if line:
                    yield where, line.split("\t")
