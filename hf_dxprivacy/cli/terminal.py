"""What the program looks like in a terminal: colours, messages, the layout of help."""

import argparse
import os
import re
import shutil
import sys
import textwrap
import time
from collections.abc import Iterable, Sequence
from typing import IO, TypeVar

PROGRAM = "hf-dxprivacy"

# Longer lines are hard to read.
WIDEST = 100

_STYLES = {"bold": 1, "dim": 2, "red": 31, "green": 32, "yellow": 33, "cyan": 36}
# Parts of help, each with its indentation and a style.
_PARTS = {
    r"()(usage:|[a-z][\w ,]*:$)": "bold",
    r"(  )(-[-\w]+(?:, -[-\w]+)*)": "cyan",
    r"(  )(hf-dxprivacy .*(?:\\\n.*)*)": "green",
    r"(  )(# .*)": "dim",
}
T = TypeVar("T")
_started = time.monotonic()


def has_colours(stream: IO[str]) -> bool:
    """Tell whether to colour: by NO_COLOR and FORCE_COLOR, or else if it is a terminal."""
    if os.environ.get("NO_COLOR"):
        return False
    plain = os.environ.get("TERM") == "dumb" or not stream.isatty()
    return bool(os.environ.get("FORCE_COLOR")) or not plain


def paint(text: str, style: str, stream: IO[str]) -> str:
    """Return text in a style, if the stream shows any."""
    return f"\033[{_STYLES[style]}m{text}\033[0m" if has_colours(stream) else text


def paint_help(text: str, stream: IO[str]) -> str:
    """Return help with its headings, options and examples in colours, if the stream shows any."""
    for part, style in _PARTS.items() if has_colours(stream) else ():
        text = re.sub(f"(?m)^{part}", r"\1" + paint(r"\2", style, stream), text)
    return text


def say(message: str, *, more: bool = False) -> None:
    """Print a message on the standard error stream.

    In a terminal its lines are filled, and a command at its end has a line of its own to be copied.

    Args:
        message: What to say; "error: " and "warning: " at its beginning are coloured.
        more: Whether it goes on from the message before.
    """
    text = f"{PROGRAM}: {message}"
    if sys.stderr.isatty():
        text, colon, command = text.partition(f": {PROGRAM} ")
        text = fold(f"  {message.partition(colon)[0] if colon else message}" if more else text)
        if colon:
            text += f":\n    {paint(f'{PROGRAM} {command}', 'green', sys.stderr)}"
    for kind, style in (("error: ", "red"), ("warning: ", "yellow")):
        if message.startswith(kind):
            text = text.replace(kind, paint(kind, style, sys.stderr), 1)
    print(text, file=sys.stderr)


def fold(text: str) -> str:
    """Return text with its lines filled to the width of the terminal, what follows indented."""
    width = min(WIDEST, shutil.get_terminal_size().columns)
    lines = []
    for line in text.splitlines():
        indent = len(line) - len(line.lstrip(" -")) or 2
        lines += textwrap.wrap(
            line,
            width,
            subsequent_indent=" " * indent,
            break_on_hyphens=False,
            break_long_words=False,
        )
    return "\n".join(lines)


def progress(steps: Sequence[T], what: str) -> Iterable[T]:
    """Return steps that show a bar on the standard error stream if that is a terminal."""
    from tqdm import tqdm

    return tqdm(steps, what, delay=1.0, disable=None)


def start_clock() -> None:
    """Count `seconds` from now on."""
    global _started
    _started = time.monotonic()


def seconds() -> str:
    """Return for how long the program has run, to be read."""
    passed = time.monotonic() - _started
    return f"{passed:.1f} s" if passed < 60 else f"{passed // 60:.0f} min {passed % 60:.0f} s"


class Layout(argparse.HelpFormatter):
    """Fills paragraphs to the width of the terminal, and leaves examples as they are."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=min(WIDEST, shutil.get_terminal_size().columns - 2))

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        blocks = text.strip("\n").split("\n\n")
        return "\n\n".join(b if b[:2] == "  " else textwrap.fill(b, width) for b in blocks)
