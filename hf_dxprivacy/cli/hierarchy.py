"""The verb hierarchy: the tree of a space."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from hf_dxprivacy.cli.arguments import UsageError, check_folder, save_measured, usage

if TYPE_CHECKING:
    from hf_dxprivacy.spaces import EmbeddingSpace

METHODS = ("average", "ward", "parts")

# Clusters around a word that are shown, and words of each.
CLUSTERS, WORDS = 4, 10


def hierarchy_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s SPACE [--method METHOD [--output FOLDER]] [--show WORD ...]"
    add = parser.add_argument
    add("space", metavar="SPACE", help="built-in name, folder or Hub repository")
    add("--method", choices=METHODS, help="build a tree: by average linkage, Ward's, or by parts")
    add("--output", type=Path, metavar="FOLDER", help="where to save it (the folder of the space)")
    add("--overwrite", action="store_true", help="replace the space that FOLDER holds")
    add("--license", metavar="ID", help="licence of the vectors as the Hub names it")
    add("--show", nargs="+", metavar="WORD", help="words whose smallest clusters are shown")


def hierarchy(args: argparse.Namespace) -> None:
    """Build and show the tree of a space, over which "hierarchical" draws.

      hf-dxprivacy hierarchy ./glove
      hf-dxprivacy hierarchy ./glove --method ward --output glove-ward
      hf-dxprivacy hierarchy english --show cat diagnosed

    Without --method the tree of the space is shown: its size and depth, how large the clusters
    around a word are, and the smallest clusters of some words. With --method a tree is built from
    the vectors and saved with the space, in place or in another folder. The tree is public, and any
    tree keeps the guarantee of "hierarchical"; it decides which words are near.

    Raises:
        UsageError: If there is nowhere to save a tree to.
        DxPrivacyError: If the space has no tree, or lacks a word.
        OSError: If a file cannot be read or written.
    """
    from hf_dxprivacy.spaces import EmbeddingSpace

    if args.method is None:
        if args.output is not None:
            raise UsageError("--output is for a tree that is built; give --method too")
        print(described(EmbeddingSpace.from_pretrained(args.space), args.show or ()))
        return
    folder = args.output
    if folder is None:
        folder = Path(args.space)
        if not folder.is_dir():
            raise UsageError(f"{args.space} is no local folder; give --output FOLDER too")
    else:
        check_folder(folder, args.overwrite)
    with usage():
        space = EmbeddingSpace.from_pretrained(args.space).build_hierarchy(args.method)
    save_measured(space, folder, args.license)
    print(f"{folder}: saved with a tree", file=sys.stderr)
    print(described(space, args.show or ()))


def described(space: "EmbeddingSpace", words: tuple[str, ...] | list[str] = ()) -> str:
    """Return the size, the depth and some branches of the tree of a space.

    Args:
        space: A space with a tree.
        words: Words whose smallest clusters are shown; three by default.

    Raises:
        InvalidValueError: If the space has no tree, or lacks a word.
    """
    import numpy as np

    from hf_dxprivacy.errors import InvalidValueError

    tree = space.hierarchy
    if tree is None:
        raise InvalidValueError(
            "the space has no tree; build one with --method average, or space.build_hierarchy()"
        )
    depths = tree.depths
    lines = [
        f"{len(tree):,} words in {len(tree.sizes):,} clusters ({tree.method or 'unknown method'})",
        f"  clusters around a word: {np.median(depths):.0f} in the median, {depths.max()} at most",
    ]
    for k in (1, 10, 100):
        size = np.median(tree.enclosing_sizes(k + 1))
        lines.append(f"  smallest cluster with {k} other words: {size:,.0f} words in the median")
    for word in words or [
        space.words[row] for row in np.linspace(0, len(space) - 1, 5)[1:4].astype(int)
    ]:
        (row,) = space.ids([word]).tolist()
        if row < 0:
            raise InvalidValueError("the space lacks a word to --show; check its letter case")
        lines.append(f"  {word}")
        for cluster in tree.chain(row)[:CLUSTERS]:
            members = [
                space.words[other] for other in tree.members(cluster).tolist() if other != row
            ]
            more = ", …" if len(members) > WORDS else ""
            lines.append(f"    {tree.sizes[cluster]:>6,}: {', '.join(members[:WORDS])}{more}")
    return "\n".join(lines)
