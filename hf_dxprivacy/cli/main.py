"""The program ``hf-dxprivacy``: finds the verb, runs it, and turns errors into exit codes."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Protocol

from hf_dxprivacy._version import __version__
from hf_dxprivacy.cli import audit, calibrate, card, convert, demo, privatize, push, train_poincare
from hf_dxprivacy.cli.interrupts import Interrupted, signals_raise
from hf_dxprivacy.cli.usage import UsageError
from hf_dxprivacy.errors import DxPrivacyError

PROGRAM = "hf-dxprivacy"

# 128 + SIGPIPE, the code of a program that is ended because nobody reads what it writes.
SIGPIPE_CODE = 141


class Verb(Protocol):
    """What the module of a verb has; its docstring becomes the help."""

    __doc__: str | None

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the arguments."""

    def run(self, args: argparse.Namespace) -> None:
        """Do it.

        Raises:
            UsageError: If the arguments do not go together.
            DxPrivacyError: If it fails.
            OSError: If a file can not be read or written.
        """


VERBS: dict[str, Verb] = {
    "privatize": privatize,
    "calibrate": calibrate,
    "demo": demo,
    "audit": audit,
    "convert": convert,
    "push": push,
    "card": card,
    "train-poincare": train_poincare,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program.

    Args:
        argv: The arguments; those of the process by default.

    Returns:
        The exit code: 0, 1 after an error, 2 after wrong usage, 128 + n after signal n (130 after
        Ctrl-C, 141 when nobody reads the output any more).
    """
    parsers = _Parsers()
    try:
        args = parsers.program.parse_args(argv)
        with signals_raise():
            return _run(args)
    except SystemExit as error:  # argparse, which has printed help or what is wrong
        return int(error.code or 0)
    except UsageError as error:
        parsers.verbs[args.verb].print_usage(sys.stderr)
        return _complain(str(error), 2)
    except Interrupted as error:
        return _complain(f"interrupted by {error.name}; nothing half-written is left", error.code)


class _Parsers:
    """The parser of the program and those of its verbs."""

    def __init__(self) -> None:
        self.program = argparse.ArgumentParser(
            PROGRAM,
            description="Metric differential privacy for text datasets.",
            epilog=f"'{PROGRAM} VERB --help' explains a verb.",
        )
        self.program.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
        group = self.program.add_subparsers(dest="verb", required=True, metavar="VERB")
        self.verbs: dict[str, argparse.ArgumentParser] = {}
        for name, verb in VERBS.items():
            summary, _, text = (verb.__doc__ or "").strip().partition("\n\n")
            self.verbs[name] = parser = group.add_parser(
                name,
                help=summary,
                description=f"{summary}\n\n{text}",
                formatter_class=argparse.RawDescriptionHelpFormatter,
            )
            verb.add_arguments(parser)
            parser.add_argument(
                "--debug", action="store_true", help="show where in the program an error arose"
            )


def _run(args: argparse.Namespace) -> int:
    try:
        VERBS[args.verb].run(args)
        sys.stdout.flush()
    except UsageError:
        raise
    except BrokenPipeError:
        return _stop_printing()
    except Exception as error:
        if args.debug:
            raise
        return _complain(_message(error), 1)
    return 0


def _stop_printing() -> int:
    """End as by SIGPIPE: whoever reads the output, such as `head`, has enough."""
    # Python flushes the rest when it ends, and would complain.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return SIGPIPE_CODE


def _message(error: Exception) -> str:
    if isinstance(error, DxPrivacyError):
        return str(error)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    # The text of an error that nobody foresaw may quote the data.
    return f"unexpected {type(error).__name__}; --debug shows where it arose"


def _complain(message: str, code: int) -> int:
    print(f"{PROGRAM}: error: {message}", file=sys.stderr)
    return code
