"""Parts of pages that scripts make, each between two marks that name it and its script."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def rewrite(
    description: str | None, script: str, page: Path, parts: Mapping[str, Callable[[], str]]
) -> bool:
    """Put the parts into their page, or with --check print how the page should read.

    Returns:
        Whether the page is what the script makes.
    """
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="fail if the page is another one")
    check = parser.parse_args().check
    before = after = page.read_text("utf-8")
    for name, make in parts.items():
        after = with_part(after, name, make(), script)
    if not check:
        page.write_text(after, "utf-8")
    elif after != before:
        print(f"{page.name} should read:\n\n{after}", file=sys.stderr)
    return not check or after == before


def with_part(page: str, name: str, content: str, script: str) -> str:
    """Return a page with another content between the marks of a name."""
    head, start, rest = page.partition(f"<!-- {name}: made by scripts/{script} -->\n")
    _, end, tail = rest.partition(f"<!-- end of {name} -->")
    if not (start and end):
        raise SystemExit(f"the page has no place for the {name}")
    return f"{head}{start}\n{content}\n{end}{tail}"


def table(titles: Sequence[str], columns: Sequence[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    rows = [titles, ["---"] * len(titles), *zip(*columns, strict=True)]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in rows)
