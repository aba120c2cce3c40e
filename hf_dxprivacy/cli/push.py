"""Push a space, a privatizer or a selector to a model repository on the Hub.

  hf-dxprivacy push ./glove me/glove-100d --license pddl
  hf-dxprivacy push ./my-privatizer me/reviews-privatizer --license cc0-1.0 --private

One commit, with a model card made anew. Afterwards everybody who may read the repository can use
it by its name: EmbeddingSpace.from_pretrained("me/glove-100d"), or --space me/glove-100d. A
privatizer is pushed with its settings and a reference to its space, never with a seed. The token
is that of 'hf auth login', or HF_TOKEN.
"""

import argparse

from hf_dxprivacy.cli.artifacts import load
from hf_dxprivacy.cli.usage import usage


def add_arguments(parser: argparse.ArgumentParser) -> None:
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


def run(args: argparse.Namespace) -> None:
    """Push a folder.

    Raises:
        UsageError: If there is no licence, or the repository's name is not possible.
        DxPrivacyError: If the folder is damaged, or the Hub refuses it or can not be reached.
    """
    stored = load(args.folder, whole=True)
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
