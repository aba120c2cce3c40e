"""The verb audit: its attacks and their arguments."""

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path

from hf_dxprivacy.cli import audit_attacks
from hf_dxprivacy.cli.arguments import Add, add_debug, add_mechanism, add_space, at_least, positive


def audit_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the attacks and their arguments."""
    attacks = parser.add_subparsers(dest="attack", required=True, metavar="ATTACK")
    for name, (declare, run_attack) in ATTACKS.items():
        about = inspect.cleandoc(run_attack.__doc__ or "").partition("\n\nRaises:")[0]
        attack = attacks.add_parser(
            name,
            help=about.partition("\n")[0],
            description=about,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        declare(attack.add_argument)
        attack.add_argument("--seed", type=at_least(0), metavar="N", help="of the attacker")
        add_debug(attack, default=argparse.SUPPRESS)


def audit(args: argparse.Namespace) -> None:
    """Attack a release, and see how far that gets; or check the guarantee of a mechanism.

      hf-dxprivacy audit attribution mail.csv released-4.csv released-8.csv --epsilon 4 8
      hf-dxprivacy audit membership reviews.csv released.csv --label-column stars
      hf-dxprivacy audit users mail.csv released.csv --user-column author
      hf-dxprivacy audit reconstruction mail.csv released.csv --mechanism tem --epsilon 8
      hf-dxprivacy audit guarantee --space english --mechanism hierarchical --epsilon 1.5

    ORIGINAL and each RELEASED have the same rows in the same order, as 'privatize' leaves them. The
    original is attacked as well, for without noise an attack should succeed: where it does not, its
    failure on a release says nothing. An attack that fails is no proof; the guarantee is.
    'hf-dxprivacy audit ATTACK --help' explains an attack.

    Raises:
        UsageError: If the arguments do not go together.
        DxPrivacyError: If a file is damaged or lacks a column, or a guarantee is broken.
        OSError: If a file cannot be read or written.
    """
    ATTACKS[args.attack][1](args)


def _attribution(add: Add) -> None:
    _add_data(add)
    add("--author-column", default="author", metavar="NAME", help="(%(default)s)")
    add(
        "--known",
        type=float,
        default=0.5,
        metavar="SHARE",
        help="share of the rows whose authors the attacker knows (%(default)s)",
    )
    add(
        "--known-released",
        action="store_true",
        help="the attacker knows those rows as they were released, not as they were written",
    )
    add("--subsets", type=at_least(1), default=100, metavar="K", help="of features (%(default)s)")
    add(
        "--threshold",
        type=float,
        default=0.9,
        metavar="S",
        help="least share of wins for which an author is named (%(default)s)",
    )


def _membership(add: Add) -> None:
    _add_data(add)
    add("--label-column", default="label", metavar="NAME", help="(%(default)s)")
    add("--repeats", type=at_least(1), default=5, metavar="N", help="random splits (%(default)s)")


def _users(add: Add) -> None:
    _add_data(add)
    add("--user-column", default="user", metavar="NAME", help="(%(default)s)")
    add("--repeats", type=at_least(1), default=3, metavar="N", help="random splits (%(default)s)")
    add(
        "--vocabulary",
        type=at_least(2),
        default=2000,
        metavar="N",
        help="words that the language model knows (%(default)s)",
    )


def _reconstruction(add: Add) -> None:
    _add_data(add, named=False)
    _add_law(add)
    add(
        "--prior",
        metavar="FILE",
        help="text from which the adversary knows how frequent words are, in the same column; by "
        "default the original, so that he knows the most",
    )
    add(
        "--words",
        type=at_least(1),
        default=2000,
        metavar="N",
        help="the adversary guesses among the N most frequent words (%(default)s)",
    )
    add(
        "--draws",
        type=at_least(2),
        default=200,
        metavar="N",
        help="draws from each word, to learn laws that are not known exactly (%(default)s)",
    )
    add(
        "--language-model",
        metavar="NAME",
        help="a folder or repository with a model for masked language modelling, which tells the "
        "adversary what to expect in context",
    )


def _guarantee(add: Add) -> None:
    _add_law(add)
    add("--epsilon", type=positive, required=True, metavar="E", help="what the mechanism is given")
    add("--inputs", type=at_least(2), metavar="N", help="compare so many words, not all or 200")
    add(
        "--draws",
        type=at_least(1),
        default=1_000_000,
        metavar="N",
        help="words drawn where the law is not known exactly (%(default)s)",
    )
    add(
        "--alpha",
        type=float,
        default=0.001,
        metavar="P",
        help="false-alarm rate of the draws (%(default)s)",
    )
    add("--output", type=Path, metavar="FILE", help="write what was found as JSON")
    add("--overwrite", action="store_true", help="replace FILE if it exists")


def _add_law(add: Add) -> None:
    add_space(add)
    add_mechanism(add)


def _add_data(add: Add, named: bool = True) -> None:
    """Declare the data and the outputs.

    Args:
        add: `add_argument` of the parser.
        named: Whether what privatized the data only has to be named, and may be left out.
    """
    add("original", metavar="ORIGINAL", help="a file, or a dataset on the Hub")
    add("released", metavar="RELEASED", nargs="*" if named else "+", help="what was made of it")
    add("--text-column", default="text", metavar="NAME", help="(%(default)s)")
    add("--released-column", metavar="NAME", help="text column of RELEASED, if it is another one")
    add("--split", default="train", help="split of datasets on the Hub (%(default)s)")
    add(
        "--epsilon",
        type=positive,
        nargs="+",
        required=not named,
        metavar="E",
        help="epsilon of each RELEASED, in the same order",
    )
    if named:
        add("--mechanism", default="released", metavar="NAME", help="for the table (%(default)s)")
    add("--dataset", metavar="NAME", help="for the table (the name of ORIGINAL)")
    add("--output", type=Path, metavar="FILE", help="write the results as JSON lines")
    add("--plot", type=Path, metavar="FILE", help="draw them against epsilon: .png, .svg or .pdf")
    add("--overwrite", action="store_true", help="replace the files if they exist")


ATTACKS: dict[str, tuple[Callable[[Add], None], Callable[[argparse.Namespace], None]]] = {
    "attribution": (_attribution, audit_attacks.attribution),
    "membership": (_membership, audit_attacks.membership),
    "users": (_users, audit_attacks.users),
    "reconstruction": (_reconstruction, audit_attacks.reconstruction),
    "guarantee": (_guarantee, audit_attacks.guarantee),
}
