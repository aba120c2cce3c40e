"""The verbs convert, card and push: spaces, privatizers and selectors in folders and on the Hub."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_dxprivacy.cli.arguments import at_least, check_folder, save_measured, usage
from hf_dxprivacy.cli.hierarchy import METHODS
from hf_dxprivacy.errors import ArtifactError

if TYPE_CHECKING:
    from hf_dxprivacy.hub import Publishable
    from hf_dxprivacy.spaces import EmbeddingSpace


def convert_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s VECTORS --output FOLDER [options]"
    add = parser.add_argument
    add("vectors", metavar="VECTORS", type=Path, help="the file of word vectors")
    add("--output", required=True, type=Path, metavar="FOLDER", help="the folder to make")
    add("--overwrite", action="store_true", help="replace the space that FOLDER holds")
    add(
        "--limit",
        type=at_least(1),
        metavar="N",
        help="read the first N words only, which are usually the most frequent",
    )
    add(
        "--metric",
        choices=("euclidean", "poincare"),
        default="euclidean",
        help="poincare is for points inside the unit ball (%(default)s)",
    )
    add(
        "--hierarchy",
        nargs="?",
        const=METHODS[0],
        choices=METHODS,
        help='build a tree too, for "hierarchical" (average, if no method is given)',
    )
    add("--unit-step", action="store_true", help="scale to a median nearest distance of 1")
    add(
        "--license",
        metavar="ID",
        help="licence of the vectors as the Hub names it, such as mit or cc-by-4.0",
    )
    add("--source", metavar="TEXT", help="where the vectors come from, for the card")


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

    Raises:
        UsageError: If the folder is in use, or the licence is not one of the Hub's.
        DxPrivacyError: If the file is malformed.
        OSError: If a file cannot be read or written.
    """
    check_folder(args.output, args.overwrite)
    from hf_dxprivacy.hub.cards import check_licence

    with usage():
        check_licence(args.license)
    space = _converted(args)
    save_measured(space, args.output, args.license)
    step = space.neighbour_distances()[1]
    print(
        f"{args.output}: {len(space)} words x {space.dim} dimensions, {space.metric}; median "
        f"distance to the nearest neighbour {step:.4g}",
        file=sys.stderr,
    )


def _converted(args: argparse.Namespace) -> "EmbeddingSpace":
    from hf_dxprivacy.spaces import EmbeddingSpace

    space = EmbeddingSpace.from_text_vectors(args.vectors, limit=args.limit)
    given = {"source": args.source, "licence": args.license}
    provenance = space.provenance | {k: value for k, value in given.items() if value}
    space = EmbeddingSpace(space.words, space.vectors, args.metric, provenance=provenance)
    if args.hierarchy is not None:
        with usage():
            space = space.build_hierarchy(args.hierarchy)
    return space.rescale(1.0 / space.neighbour_distances()[1]) if args.unit_step else space


def card_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s FOLDER [options]"
    parser.add_argument("folder", metavar="FOLDER", help="what save_pretrained has written")
    parser.add_argument("--license", metavar="ID", help="licence as the Hub names it")


def card(args: argparse.Namespace) -> None:
    """Make the model card of a space, a privatizer or a selector anew.

      hf-dxprivacy card ./glove --license pddl

    README.md, and for a space the picture privacy.png, are written into the folder; whatever was
    measured before and still belongs to the space is not measured again. Nothing else is changed
    but the measured figures in config.json. A push makes the card by itself; this is for looking at
    it first.

    Raises:
        UsageError: If the Hub knows no such licence.
        DxPrivacyError: If the folder is damaged.
        OSError: If a file cannot be written.
    """
    from hf_dxprivacy.hub import update_config
    from hf_dxprivacy.report import measure
    from hf_dxprivacy.spaces import EmbeddingSpace

    stored = _load(args.folder, whole=False)
    if isinstance(stored, EmbeddingSpace):
        stored = measure(stored)
        changes = {"figures": stored.figures, "certificates": stored.certificates}
        update_config(args.folder, changes)
    with usage():
        stored.write_card(Path(args.folder), license=args.license)
    print(f"{Path(args.folder) / 'README.md'} written", file=sys.stderr)


def push_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s FOLDER REPOSITORY [options]"
    add = parser.add_argument
    add("folder", metavar="FOLDER", help="what save_pretrained or 'convert' has written")
    add("repository", metavar="REPOSITORY", help="namespace/name; made if there is none")
    add(
        "--license",
        metavar="ID",
        help="licence as the Hub names it, such as mit or cc-by-4.0; required unless the space "
        "states its own",
    )
    add("--private", action="store_true", default=None, help="make a new repository private")
    add("--revision", metavar="BRANCH", help="branch to commit to; made if there is none (main)")
    add("--message", metavar="TEXT", help="says what was changed")
    add("--create-pr", action="store_true", help="open a pull request instead")


def push(args: argparse.Namespace) -> None:
    """Push a space, a privatizer or a selector to a model repository on the Hub.

      hf-dxprivacy push ./glove me/glove-100d --license pddl
      hf-dxprivacy push ./my-privatizer me/reviews-privatizer --license cc0-1.0 --private

    One commit, with a model card made anew. Afterwards all who may read the repository can
    use it by its name: EmbeddingSpace.from_pretrained("me/glove-100d"), or --space me/glove-100d. A
    privatizer is pushed with its settings and a reference to its space, never with a seed. The
    token is that of 'hf auth login', or HF_TOKEN.

    Raises:
        UsageError: If there is no licence, or the repository's name is not possible.
        DxPrivacyError: If the folder is damaged, or the Hub refuses it or cannot be reached.
    """
    from hf_dxprivacy.report import measure
    from hf_dxprivacy.spaces import EmbeddingSpace

    stored = _load(args.folder, whole=True)
    if isinstance(stored, EmbeddingSpace):
        stored = measure(stored)
    with usage():
        commit = stored.push_to_hub(
            args.repository,
            license=args.license,
            private=args.private,
            revision=args.revision,
            commit_message=args.message,
            create_pr=args.create_pr,
        )
    print(commit.pr_url or commit.commit_url)


def _load(folder: str, *, whole: bool) -> "Publishable":
    """Load a space, a privatizer or a selector from a folder.

    Args:
        folder: The folder.
        whole: Whether to load the index and the lists of a space too, if it has them.

    Raises:
        ArtifactError: If the folder holds none of them, or is damaged.
    """
    from hf_dxprivacy.hub.atomic import current_folder
    from hf_dxprivacy.privatizers import config
    from hf_dxprivacy.privatizers.slot_privatizer import SlotPrivatizer
    from hf_dxprivacy.privatizers.text_privatizer import DxPrivatizer
    from hf_dxprivacy.privatizers.token_privatizer import TokenPrivatizer
    from hf_dxprivacy.slots import LowTransitionSelector, ngram_storage
    from hf_dxprivacy.spaces import EmbeddingSpace, space_artifact

    path = current_folder(folder)
    if (path / config.FILE).is_file():
        kinds: tuple[Any, ...] = (DxPrivatizer, SlotPrivatizer, TokenPrivatizer)
        privatizers = {kind.__name__: kind for kind in kinds}
        loaded: Publishable = privatizers[config.owner_in(path)].from_pretrained(path)
        return loaded
    if (path / ngram_storage.SETTINGS).is_file():
        return LowTransitionSelector.from_pretrained(path)
    if not path.is_dir():
        raise ArtifactError(f"{folder}: expected a folder that save_pretrained has written")
    if not whole:
        return EmbeddingSpace.from_pretrained(path)
    return EmbeddingSpace.from_pretrained(path, **space_artifact.stored_parts(path))
