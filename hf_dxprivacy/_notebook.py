"""What a notebook shows of an object: what it prints, as HTML without styles or scripts of its own.

Colours are the notebook's, light or dark; all text is escaped.
"""

import re
from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

# What stands before the colon of a line, which says what the line is about.
_LABEL = re.compile(r"[A-Z][\w ]{2,24}: ")
_CELL = "padding: .15em .6em; border-bottom: 1px solid #8886; vertical-align: top; text-align: "
# The line after which the rest is folded.
DETAILS = "Details:"


class ReprHTML:
    """Base of what a notebook shows as it prints."""

    __slots__ = ()

    def _shown(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {str(self).partition(chr(10))[0]}>"

    def _repr_html_(self) -> str:
        """Return what prints, for a notebook: tables as tables, details folded."""
        return as_html(self._shown())


def as_html(text: str) -> str:
    """Return a printed text as HTML: tables of Markdown, lists, and what follows "Details:" folded.

    Args:
        text: Of lines; a first one without a label is the title.
    """
    title, *lines = text.split("\n")
    if _LABEL.match(title) or title.startswith("|"):
        title, lines = "", [title, *lines]
    at = lines.index(DETAILS) if DETAILS in lines else len(lines)
    parts = [f"<div><strong>{escape(title)}</strong></div>" if title else "", *_blocks(lines[:at])]
    if more := "".join(_blocks(lines[at + 1 :])):
        parts.append(f'<details><summary style="cursor: pointer">Details</summary>{more}</details>')
    return f'<div style="max-width: 60em; line-height: 1.5">{"".join(parts)}</div>'


def _blocks(lines: Sequence[str]) -> Iterator[str]:
    for kind, group in groupby(filter(str.strip, lines), lambda line: line.strip()[0]):
        block = [line.strip() for line in group]
        if kind == "|":
            yield _table([line.strip("|").split("|") for line in block])
        elif kind == "-":
            items = "".join(f"<li>{escape(line.removeprefix('- '))}</li>" for line in block)
            yield f'<ul style="margin: .3em 0; padding-left: 1.4em">{items}</ul>'
        else:
            for line in block:
                label = match[0] if (match := _LABEL.match(line)) else ""
                bold = f"<strong>{escape(label)}</strong>" if label else ""
                yield f"<div>{bold}{escape(line.removeprefix(label))}</div>"


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown, whose second row has the alignments."""
    head, rule, *body = rows
    sides = ["right" if mark.strip().endswith(":") else "left" for mark in rule]

    def row(cells: Sequence[str], name: str) -> str:
        shown = zip(cells, sides, strict=False)
        return "".join(
            f'<{name} style="{_CELL}{side}">{escape(cell.strip())}</{name}>' for cell, side in shown
        )

    lines = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in body)
    style = "border-collapse: collapse; margin: .3em 0; font: inherit"
    table = f'<table style="{style}"><tr>{row(head, "th")}</tr>{lines}</table>'
    return f'<div style="overflow-x: auto">{table}</div>'
