"""The verbs convert, hierarchy and card, on folders of `save_pretrained`."""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_dxprivacy.cli.arguments import Parser, UsageError, usage, whole
from hf_dxprivacy.cli.terminal import PROGRAM, say, seconds
from hf_dxprivacy.errors import ArtifactError, InvalidValueError

if TYPE_CHECKING:
    from hf_dxprivacy.hub import Publishable
    from hf_dxprivacy.privatizers.privatizer import Privatizer
    from hf_dxprivacy.report.card_measurements import Space
    from hf_dxprivacy.sentences import SentencePool
    from hf_dxprivacy.spaces import EmbeddingSpace

# Ways to build a tree.
METHODS = ("average", "ward", "parts")

# Clusters around a word that are shown, and words of each; of a pool, sentences.
CLUSTERS, WORDS, SENTENCES = 4, 10, 3

OVERWRITE = "replace the space that FOLDER holds"
LICENSE = "licence of the vectors as the Hub names it, such as mit or cc-by-4.0"


def check_folder(folder: Path, overwrite: bool, of_pool: bool = False) -> None:
    """Require that a space, or a pool of sentences, can be put into this place.

    Raises:
        UsageError: If there is something else, or a space that may not be replaced.
    """
    from hf_dxprivacy.hub.atomic import current_folder, is_leftover
    from hf_dxprivacy.sentences import is_pool

    if not folder.exists() or (folder.is_dir() and all(map(is_leftover, folder.iterdir()))):
        return
    if not (current_folder(folder) / "config.json").is_file():
        raise UsageError(f"{folder} exists and holds no space; name another folder")
    held = "pool of sentences" if is_pool(folder) else "space"
    if is_pool(folder) != of_pool:
        raise UsageError(f"{folder} holds a {held}; name another folder")
    if not overwrite:
        raise UsageError(f"{folder} holds a {held} already; name another folder, or --overwrite it")


def save_measured(space: "Space", folder: Path, license: str | None) -> None:
    """Save a space or a pool with the figures of its card; the folder holds the old or the new one.

    Raises:
        OSError: If it cannot be written; names a path.
    """
    from hf_dxprivacy.report import measure

    try:
        measure(space).save_pretrained(folder, license=license)
    except OSError as error:
        if error.errno and not error.filename:
            raise OSError(error.errno, error.strerror, str(folder)) from error
        raise


def convert_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage, add = "%(prog)s VECTORS --output FOLDER [options]", parser.add
    add("vectors", "VECTORS", "the file of word vectors", Path)
    add("--output", "FOLDER", "the folder to make", Path, required=True)
    add("--overwrite", None, OVERWRITE)
    about = "read the first N words only, which are usually the most frequent"
    add("--limit", "N", about, whole)
    about = "poincare is for points inside the unit ball (%(default)s)"
    add("--metric", ("euclidean", "poincare"), about, default="euclidean")
    about = 'build a tree too, for "hierarchical" (average, if no method is given)'
    add("--hierarchy", METHODS, about, nargs="?", const=METHODS[0])
    add("--unit-step", None, "scale to a median nearest distance of 1")
    add("--license", "ID", LICENSE)
    add("--source", "TEXT", "where the vectors come from, for the card")


def convert(args: argparse.Namespace) -> None:
    """Make a space, ready to use and to push, from a file of word vectors.

    The file is in one of the usual formats: GloVe text, word2vec text or binary, fastText .vec,
    each plain or gzip-compressed.

      hf-dxprivacy convert glove.6B.100d.txt --output glove --limit 50000 --unit-step
      hf-dxprivacy privatize in.csv --output out.csv --space ./glove --mechanism tem --epsilon 6

    The folder holds the vectors, the vocabulary, a config.json with digests of both, and a model
    card with the distances between the words and what the mechanisms do to them. epsilon is per
    unit of distance; --unit-step scales the vectors so that the median distance to the nearest
    neighbour is 1, as in the built-in spaces. Without it the words of GloVe are about 5 apart, and
    an epsilon of 5 or 10 leaves nearly every word as it is.
    """
    check_folder(args.output, args.overwrite)
    from hf_dxprivacy.hub.cards import check_licence
    from hf_dxprivacy.spaces import EmbeddingSpace

    with usage():
        check_licence(args.license)
    space = EmbeddingSpace.from_text_vectors(args.vectors, limit=args.limit)
    given = {"source": args.source, "licence": args.license}
    provenance = space.provenance | {k: value for k, value in given.items() if value}
    space = EmbeddingSpace(space.words, space.vectors, args.metric, provenance=provenance)
    if args.hierarchy is not None:
        with usage():
            space = space.build_hierarchy(args.hierarchy)
    if args.unit_step:
        space = space.rescale(1.0 / space.neighbour_distances()[1])
    save_measured(space, args.output, args.license)
    say(
        f"{args.output}: {len(space):,} words x {space.dim} dimensions, {space.metric}, written in "
        f"{seconds()}; median distance to the nearest neighbour "
        f"{space.neighbour_distances()[1]:.4g}"
    )
    suited = "hierarchical --epsilon 1 1.5 2" if space.hierarchy else "tem --epsilon 6 8 10"
    say(f"next: {PROGRAM} calibrate ./{args.output} --mechanism {suited}")


def hierarchy_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s SPACE [--method METHOD [--output FOLDER]] [--show WORD ...]"
    add = parser.add
    add("space", "SPACE", "built-in name, folder or Hub repository")
    add("--method", METHODS, "build a tree: by average linkage, Ward's, or by parts")
    add("--output", "FOLDER", "where to save it (the folder of the space)", Path)
    add("--overwrite", None, OVERWRITE)
    add("--license", "ID", LICENSE)
    add("--show", "WORD", "words, of a pool texts, whose smallest clusters are shown", nargs="+")


def hierarchy(args: argparse.Namespace) -> None:
    """Build and show the tree of a space, over which "hierarchical" draws.

      hf-dxprivacy hierarchy ./glove
      hf-dxprivacy hierarchy ./glove --method ward --output glove-ward
      hf-dxprivacy hierarchy english --show cat diagnosed

    Without --method the tree of the space is shown: its size and depth, how large the clusters
    around a word are, and the smallest clusters of some words. With --method a tree is built from
    the vectors and saved with the space, in place or in another folder. The tree is public, and any
    tree keeps the guarantee of "hierarchical"; it decides which words are near. Of a pool, the
    entries of texts to --show are shown.
    """
    from hf_dxprivacy.sentences import SentencePool, is_pool
    from hf_dxprivacy.spaces import EmbeddingSpace

    of_pool = is_pool(args.space)
    folder = args.output
    if args.method is None and folder is not None:
        raise UsageError("--output is for a tree that is built; give --method too")
    if args.method is not None and folder is None:
        folder = Path(args.space)
        if not folder.is_dir():
            raise UsageError(f"{args.space} is no local folder; give --output FOLDER too")
    elif folder is not None:
        check_folder(folder, args.overwrite, of_pool)
    pool = SentencePool.from_pretrained(args.space) if of_pool else None
    space = pool.space if pool else EmbeddingSpace.from_pretrained(args.space)
    if folder is not None:
        with usage():
            space = space.build_hierarchy(args.method)
        if pool is None:
            save_measured(space, folder, args.license)
        else:
            pool = replace(pool, space=space)
            save_measured(pool, folder, args.license)
        say(f"{folder}: saved with a tree in {seconds()}")
    print(_described(space, args.show or (), pool))


def _described(
    space: "EmbeddingSpace", words: "list[str] | tuple[str, ...]", pool: "SentencePool | None"
) -> str:
    """Return the size and the depth of a tree, and the smallest clusters around some entries."""
    import numpy as np

    tree, entry = space.hierarchy, space.item_kind[:-1]
    shown, between = (SENTENCES, "\n            ") if pool else (WORDS, ", ")
    if tree is None:
        raise InvalidValueError(
            "the space has no tree; build one with --method average, or space.build_hierarchy()"
        )
    depths = tree.depths
    lines = [
        f"{len(tree):,} {entry}s in {len(tree.sizes):,} clusters "
        f"({tree.method or 'unknown method'})",
        f"  clusters around a {entry}: {np.median(depths):.0f} in the median, {depths.max()} at "
        "most",
    ]
    for k in (1, 10, 100):
        size = np.median(tree.enclosing_sizes(k + 1))
        lines.append(
            f"  smallest cluster with {k} other {entry}s: {size:,.0f} {entry}s in the median"
        )
    spread = np.linspace(0, len(space) - 1, 5)[1:4].astype(int).tolist()
    asked = (pool.look_up(words) if pool else space.ids(words)).tolist() if words else spread
    for row in asked:
        if row < 0:
            raise InvalidValueError(
                "the encoder of the pool has nothing for a text to --show"
                if pool
                else "the space lacks a word to --show; check its letter case"
            )
        lines.append(f"  {space.words[row]}")
        for cluster in tree.chain(row)[:CLUSTERS]:
            members = [space.words[at] for at in tree.members(cluster).tolist() if at != row]
            more = f"{between}…" if len(members) > shown else ""
            lines.append(f"    {tree.sizes[cluster]:>6,}: {between.join(members[:shown])}{more}")
    return "\n".join(lines)


def card_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s FOLDER [options]"
    parser.add("folder", "FOLDER", "what save_pretrained has written")
    parser.add("--license", "ID", "licence as the Hub names it")


def card(args: argparse.Namespace) -> None:
    """Make the model card of a space, a pool, a privatizer or a selector anew.

      hf-dxprivacy card ./glove --license pddl

    README.md, and for a space or pool the picture privacy.png, are written into the folder;
    whatever was measured before and still belongs to the space is not measured again. Nothing else
    is changed but the measured figures in config.json. A push makes the card by itself; this is for
    looking at it first.
    """
    from hf_dxprivacy.hub import update_config
    from hf_dxprivacy.sentences import SentencePool
    from hf_dxprivacy.spaces import EmbeddingSpace

    stored = load_stored(args.folder, whole=False)
    space = stored.space if isinstance(stored, SentencePool) else stored
    if isinstance(space, EmbeddingSpace):
        changes = {"figures": space.figures, "certificates": space.certificates}
        update_config(args.folder, changes)
    with usage():
        stored.write_card(Path(args.folder), license=args.license)
    say(f"{Path(args.folder) / 'README.md'} written in {seconds()}")


def load_stored(folder: str, *, whole: bool) -> "Publishable":
    """Load what a folder holds; a space is measured, and if `whole` all it has built is loaded."""
    from hf_dxprivacy.hub.artifact import ENCODER
    from hf_dxprivacy.hub.atomic import current_folder
    from hf_dxprivacy.privatizers import config
    from hf_dxprivacy.report import measure
    from hf_dxprivacy.sentences import SentencePool
    from hf_dxprivacy.slots.low_transition import SETTINGS, LowTransitionSelector
    from hf_dxprivacy.spaces import EmbeddingSpace, space_artifact

    path = current_folder(folder)
    if (path / config.FILE).is_file():
        return load_privatizer(folder)
    if (path / SETTINGS).is_file():
        return LowTransitionSelector.from_pretrained(path)
    if (path / ENCODER).is_file():
        return measure(SentencePool.from_pretrained(path))
    if not path.is_dir():
        raise ArtifactError(f"{folder}: expected a folder that save_pretrained has written")
    parts = space_artifact.stored_parts(path) if whole else {}
    return measure(EmbeddingSpace.from_pretrained(path, **parts))


def load_privatizer(folder: str) -> "Privatizer":
    """Load a stored privatizer, of whichever class it is."""
    from hf_dxprivacy.hub.atomic import current_folder
    from hf_dxprivacy.privatizers import config
    from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
    from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
    from hf_dxprivacy.sentences.sentence_privatizer import SentencePrivatizer
    from hf_dxprivacy.slots.slot_privatizer import SlotPrivatizer

    path = current_folder(folder)
    kinds: list[Any] = [DxPrivatizer, SentencePrivatizer, SlotPrivatizer, TokenPrivatizer]
    privatizers = {kind.__name__: kind for kind in kinds}
    loaded: Privatizer = privatizers[config.owner_in(path)].from_pretrained(path)
    return loaded
