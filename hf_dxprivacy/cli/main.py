"""The program ``hf-dxprivacy``: finds the verb, imports its module only, and returns exit codes."""

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from types import FrameType
from typing import Any

from hf_dxprivacy._version import __version__
from hf_dxprivacy.cli.arguments import Parser, UsageError
from hf_dxprivacy.cli.terminal import PROGRAM, say, start_clock
from hf_dxprivacy.errors import DxPrivacyError, did_you_mean, nearest_path

# The verbs by purpose. Each is a function of its module, whose docstring is the help;
# VERB_arguments declares its arguments.
PURPOSES = {
    "release": {
        "privatize": ("privatize", "replace the words of a text dataset, with a guarantee"),
    },
    "choose, and check": {
        "calibrate": ("calibrate", "show what a mechanism does at several epsilons, to choose one"),
        "compare": ("compare", "what each mechanism costs and hides on your own texts"),
        "demo": ("calibrate", "open a local page to try texts and epsilons"),
        "audit": ("audit", "attack a release, or check the guarantee of a mechanism"),
    },
    "make a space or a pool": {
        "convert": ("artifacts", "make a space from a file of word vectors"),
        "hierarchy": ("artifacts", "build or show the tree of a space"),
        "train-poincare": ("train_poincare", "train a hyperbolic space from is-a relations"),
        "pool": ("make_pool", "make a pool of sentences from public texts"),
    },
    "share": {
        "card": ("artifacts", "make the model card of a space, a pool, a privatizer or a selector"),
        "push": ("push", "push a release, a space, a pool, a privatizer or a selector to the Hub"),
    },
    "this program": {
        "completion": ("completion", "print what lets the Tab key complete verbs and options"),
    },
}
VERBS = {verb: named for verbs in PURPOSES.values() for verb, named in verbs.items()}

# Words that others use for a verb.
_MEANT = {
    **dict.fromkeys(("anonymize", "perturb", "redact", "run", "map"), "privatize"),
    **{"attack": "audit", "verify": "audit", "page": "demo", "serve": "demo", "ui": "demo"},
    **{"tree": "hierarchy", "upload": "push", "train": "train-poincare"},
    **{"autocomplete": "completion"},
}

# 128 + SIGPIPE, the code of a program that is ended because its output is not read any more.
SIGPIPE_CODE = 141

# After a signal others have no effect for so long, so that they do not disturb the clean-up.
CLEAN_UP_SECONDS = 5.0


class Interrupted(BaseException):
    """A signal asked the program to end; its number is the argument."""


def main(argv: Sequence[str] | None = None) -> int:
    r"""Metric differential privacy for text datasets.

      hf-dxprivacy privatize reviews.csv --output released.csv --text-column review \
          --mechanism hierarchical --epsilon 1.5

    'hf-dxprivacy VERB --help' explains a verb; 'hf-dxprivacy --version' shows the version. The exit
    code is 0, 1 after an error, 2 after wrong usage, 128 + n after signal n (130 after Ctrl-C), and
    141 when the output is not read any more.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    start_clock()
    _open_missing_streams()
    try:
        with _signals_raise():
            return _run(arguments)
    except SystemExit as error:  # argparse, which has printed help or what is wrong
        return int(error.code or 0)
    except Interrupted as error:
        whole = "" if "-" in arguments else "; nothing half-written is left"
        number = signal.Signals(error.args[0])
        return _complain(f"interrupted by {number.name}{whole}", 128 + number)


def parser_of(verb: str, verbs: Any = None) -> Parser:
    """Return the parser of a verb, having imported its module.

    Args:
        verb: A key of `VERBS`.
        verbs: Where to add it, as `argparse.ArgumentParser.add_subparsers` returns it.
    """
    name = verb.replace("-", "_")
    module = import_module(f"hf_dxprivacy.cli.{VERBS[verb][0]}")
    function: Callable[..., None] = getattr(module, name)
    parser: Parser = (
        verbs.add_parser(verb, function=function, help=VERBS[verb][1])
        if verbs
        else Parser(f"{PROGRAM} {verb}", function)
    )
    getattr(module, f"{name}_arguments")(parser)
    parser.set_defaults(run=function)
    return parser


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0].startswith("-"):
        return _without_verb(arguments)
    verb, *rest = arguments
    if verb == "help":  # as git and others have it
        return _run([*rest[:1], "--help"])
    if verb not in VERBS:
        return _complain(f"there is no verb {verb!r}{_nearest(verb)}", 2)
    parser = parser_of(verb)
    args = parser.parse_args(rest)
    try:
        args.run(args)
        sys.stdout.flush()
    except UsageError as error:
        parser.print_usage(sys.stderr)
        return _complain(str(error), 2)
    except BrokenPipeError:
        # Python flushes the rest when it ends, and would complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SIGPIPE_CODE
    except Exception as error:
        if "debug" in args:
            raise
        return _complain(_explained(error), 1)
    return 0


def _explained(error: Exception) -> str:
    if isinstance(error, OSError) and not isinstance(error, DxPrivacyError) and error.filename:
        said = f"{error.filename}: {error.strerror}"
        missing = isinstance(error, FileNotFoundError) and "did you mean" not in said
        return said + (nearest_path(error.filename) if missing else "")
    if isinstance(error, (DxPrivacyError, OSError)):
        return str(error)
    # The text of an unforeseen error may quote the data.
    return f"unexpected {type(error).__name__}; --debug shows where it arose"


def _nearest(verb: str) -> str:
    """Say which verb was meant, or which there are."""
    if os.path.isfile(verb):
        return f"; did you mean '{PROGRAM} privatize {verb}'?"
    meant = f"; did you mean {_MEANT[verb]!r}?" if verb in _MEANT else did_you_mean(verb, VERBS)
    return meant or f"; expected one of {', '.join(VERBS)}"


def _without_verb(arguments: list[str]) -> int:
    """Print the version, or what verbs there are."""
    given = arguments[0] if arguments else ""
    if given in ("--version", "-V"):
        print(f"{PROGRAM} {__version__}")
        return 0
    parser = Parser(PROGRAM, main, usage=f"{PROGRAM} VERB ...")
    for purpose, verbs in PURPOSES.items():
        add = parser.under(purpose)
        for verb, (_, about) in verbs.items():
            add(verb, verb, about)
    if given in ("-h", "--help"):
        parser.print_help()
        return 0
    parser.print_usage(sys.stderr)
    near = did_you_mean(given, ("--help", "--version")) if given else ""
    wrong = f"there is no option {given!r}{near}; " if given else ""
    return _complain(f"{wrong}expected a verb: {', '.join(VERBS)}; see {PROGRAM} --help", 2)


def _complain(message: str, code: int) -> int:
    say(f"error: {message}")
    return code


def _open_missing_streams() -> None:
    """Open the null device for standard streams that the caller has closed.

    Otherwise the next file that is opened takes the number of one, and messages get into the data.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free
            setattr(sys, name, open(os.devnull, mode))


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Raise `Interrupted` where SIGINT (Ctrl-C), SIGTERM, SIGHUP or SIGQUIT arrives.

    A signal that the caller ignores (nohup, a job in the background) stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    names = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT")
    numbers = [getattr(signal, name) for name in names if hasattr(signal, name)]
    before = {n: signal.getsignal(n) for n in numbers if signal.getsignal(n) != signal.SIG_IGN}
    last = -math.inf

    def interrupt(number: int, _frame: FrameType | None) -> None:
        nonlocal last
        if time.monotonic() - last > CLEAN_UP_SECONDS:
            last = time.monotonic()
            raise Interrupted(number)

    try:
        for number in before:
            signal.signal(number, interrupt)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
