"""The verb push: released datasets, and folders of `save_pretrained`, to the Hub."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from hf_dxprivacy.cli.arguments import Parser, UsageError, usage
from hf_dxprivacy.cli.artifacts import LICENSE, load_privatizer, load_stored
from hf_dxprivacy.cli.terminal import PROGRAM, say
from hf_dxprivacy.errors import nearest_path

if TYPE_CHECKING:
    from hf_dxprivacy.hub import Publishable
    from hf_dxprivacy.publishing import ReleasedDataset

# Files that `Dataset.save_to_disk` and `DatasetDict.save_to_disk` write.
SAVED_DATASET = ("state.json", "dataset_dict.json")


def push_arguments(parser: Parser) -> None:
    """Declare the arguments."""
    parser.usage = "%(prog)s RELEASE|FOLDER REPOSITORY [options]"
    about = "a released file or dataset, or what save_pretrained or 'convert' has written"
    parser.add("source", "RELEASE|FOLDER", about)
    parser.add("repository", "REPOSITORY", "namespace/name; made if there is none")
    add = parser.under("repository")
    about = f"{LICENSE}; of a release that of the dataset; required unless a space states its own"
    add("--license", "ID", about)
    add("--private", None, "make a new repository private", default=None)
    add("--revision", "BRANCH", "branch to commit to; made if there is none (main)")
    add("--message", "TEXT", "says what was changed")
    add("--create-pr", None, "open a pull request instead")
    add = parser.under("releases")
    about = "what privatize --report wrote (RELEASE.report.json); its counts are not published"
    add("--report", "PATH", about, Path)
    about = "for a folder of save_to_disk: the folder of the privatizer that made the release"
    add("--privatizer", "FOLDER", about)
    add("--description", "TEXT", "what the texts are about, for the card")
    about = "publish a column that still holds the ORIGINAL text, too (--output-column leaves one)"
    add("--with-originals", None, about)
    about = "write data and card into this folder to look at, and send nothing"
    add("--dry-run", "FOLDER", about, Path)


def push(args: argparse.Namespace) -> None:
    r"""Push a release to a dataset repository on the Hub, or a space or the like to a model one.

      hf-dxprivacy privatize reviews.csv --output released.parquet --report \
          --mechanism hierarchical --epsilon 1.5
      hf-dxprivacy push released.parquet me/reviews-released --license cc-by-4.0

    A released file needs the report of its release, which names its SHA-256, so that no other file
    gets its guarantee; what 'Dataset.save_to_disk' wrote needs the privatizer, which is taken at
    its word. One commit holds the data, a dataset card with the guarantee, the columns in clear and
    what is not covered, and the same as JSON (guarantee.json, croissant.json). Counts of the report
    and whatever else was derived from the originals stay here.

      hf-dxprivacy push ./glove me/glove-100d --license pddl
      hf-dxprivacy push ./my-privatizer me/reviews-privatizer --license cc0-1.0 --private

    Spaces, pools of sentences, privatizers and selectors go to a model repository, with a model
    card made anew; all who may read it can use them by its name. A privatizer is pushed with its
    settings and a reference to its space, never with a seed. The token is that of 'hf auth login',
    or HF_TOKEN.
    """
    path = Path(args.source)
    folder: Path | None = args.dry_run
    if folder and folder.exists() and (folder.is_file() or any(folder.iterdir())):
        raise UsageError(f"{folder} is not an empty folder; name another one for --dry-run")
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]

    from hf_dxprivacy.hub.client import hub_errors

    with usage(), hub_errors(args.repository, "push"):
        validate_repo_id(args.repository)
    made: Publishable
    if not path.exists():
        raise UsageError(
            f"there is no file or folder {path}{nearest_path(path) or '; check the path'}"
        )
    is_file = path.is_file()
    if is_file or any((path / name).is_file() for name in SAVED_DATASET):
        made = _release(args, path, is_file)
    else:
        for_releases = ("report", "privatizer", "description", "dry_run", "with_originals")
        if given := [f"--{n.replace('_', '-')}" for n in for_releases if vars(args)[n]]:
            raise UsageError(
                f"{', '.join(given)} is for a released file or a folder of save_to_disk, and "
                f"{path} is neither; of other folders a push sends what is there, with the card "
                f"that '{PROGRAM} card {path} --license ID' makes"
            )
        made = load_stored(args.source, whole=True)
    if args.dry_run:
        with usage():
            made.save_pretrained(args.dry_run, license=args.license)
            made.write_card(args.dry_run, license=args.license, name=args.repository)
        say(f"{args.dry_run}: data and card written; nothing was sent")
        return
    with usage():
        commit = made.push_to_hub(
            args.repository,
            license=args.license,
            private=args.private,
            revision=args.revision,
            commit_message=args.message,
            create_pr=args.create_pr,
        )
    print(commit.pr_url or commit.commit_url)


def _release(args: argparse.Namespace, path: Path, is_file: bool) -> "ReleasedDataset":
    """Return a release with its card; refuse what would publish more than is meant."""
    if is_file == (args.privatizer is not None):
        raise UsageError(
            f"{path} is a file, whose guarantee is in the report of its release (--report), not in "
            "a privatizer"
            if is_file
            else f"{path} is a folder of save_to_disk: name the privatizer that made the release "
            "(--privatizer FOLDER, which save_pretrained wrote)"
        )
    if args.report and not is_file:
        raise UsageError(f"--report is for a released file, and {path} is a folder")
    if args.license is None:
        raise UsageError(
            "--license is missing: others may use a dataset only under a licence; name that of the "
            "dataset as the Hub does, such as cc-by-4.0, if the rights are yours to give"
        )
    about = {"license": args.license, "description": args.description}
    about["with_originals"] = args.with_originals
    if is_file:
        from hf_dxprivacy.files.released_file import released_dataset

        with usage():
            made = released_dataset(path, args.report, **about)
    else:
        from datasets import load_from_disk

        from hf_dxprivacy.publishing.claim import card_of

        with usage():
            made = card_of(load_privatizer(args.privatizer), load_from_disk(path), **about)
    names = [f"{name!r} (the ORIGINAL text)" for name in made.original_columns]
    names += map(repr, made.columns_in_clear)
    columns = [f"column{'s' * (len(names) > 1)} {', '.join(names)}"] * bool(names)
    if clear := [*columns, *made.left_in_clear]:
        say(f"IN CLEAR, without any guarantee: {'; '.join(clear)}")
    return made
