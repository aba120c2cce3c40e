"""Attack a release, and see how far that gets; or check the guarantee of a mechanism.

  hf-dxprivacy audit attribution mail.csv released-4.csv released-8.csv --epsilon 4 8
  hf-dxprivacy audit membership reviews.csv released.csv --label-column stars
  hf-dxprivacy audit users mail.csv released.csv --user-column author
  hf-dxprivacy audit reconstruction mail.csv released.csv --space wordnet-gloss --epsilon 8
  hf-dxprivacy audit guarantee --space wordnet-gloss --mechanism tem --epsilon 8 --inputs 500

ORIGINAL and each RELEASED have the same rows in the same order, as 'privatize' leaves them. The
original is attacked as well, for without noise an attack should succeed: where it does not, its
failure on a release says nothing. An attack that fails is no proof; the guarantee is.
'hf-dxprivacy audit ATTACK --help' explains an attack.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

from hf_dxprivacy.cli import audit_attacks, audit_guarantee
from hf_dxprivacy.cli.audit_data import add_curve_arguments
from hf_dxprivacy.cli.mechanism import add_mechanism_arguments
from hf_dxprivacy.cli.usage import at_least, positive

Add = Callable[..., argparse.Action]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the attacks and their arguments."""
    attacks = parser.add_subparsers(dest="attack", required=True, metavar="ATTACK")
    for name, (declare, run_attack) in ATTACKS.items():
        summary, _, text = (run_attack.__doc__ or "").strip().partition("\n\n")
        about = text.partition("Raises:")[0]
        attack = attacks.add_parser(
            name,
            help=summary,
            description=f"{summary}\n\n{about}".replace("\n    ", "\n").rstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        declare(attack.add_argument)
        attack.add_argument("--seed", type=at_least(0), metavar="N", help="of the attacker")
        attack.add_argument(
            "--debug",
            action="store_true",
            default=argparse.SUPPRESS,
            help="show where in the program an error arose",
        )


def run(args: argparse.Namespace) -> None:
    """Run an attack.

    Raises:
        UsageError: If the arguments do not go together.
        DxPrivacyError: If a file is damaged or lacks a column, or a guarantee is broken.
        OSError: If a file can not be read or written.
    """
    ATTACKS[args.attack][1](args)


def _attribution(add: Add) -> None:
    add_curve_arguments(add)
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
        help="share of wins from which on somebody is named (%(default)s)",
    )


def _membership(add: Add) -> None:
    add_curve_arguments(add)
    add("--label-column", default="label", metavar="NAME", help="(%(default)s)")
    add("--repeats", type=at_least(1), default=5, metavar="N", help="random splits (%(default)s)")


def _users(add: Add) -> None:
    add_curve_arguments(add)
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
    add_curve_arguments(add, named=False)
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
    add(
        "--space",
        default="wordnet-gloss",
        metavar="NAME",
        help="a built-in space, a folder that holds one, or a repository on the Hub (%(default)s)",
    )
    add_mechanism_arguments(add)


ATTACKS: dict[str, tuple[Callable[[Add], None], Callable[[argparse.Namespace], None]]] = {
    "attribution": (_attribution, audit_attacks.attribution),
    "membership": (_membership, audit_attacks.membership),
    "users": (_users, audit_attacks.users),
    "reconstruction": (_reconstruction, audit_attacks.reconstruction),
    "guarantee": (_guarantee, audit_guarantee.guarantee),
}
