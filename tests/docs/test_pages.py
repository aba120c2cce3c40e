"""All pages: links lead somewhere; tests, scripts and options that they name exist."""

import re
import shlex
from pathlib import Path

import pytest

from hf_dxprivacy.cli.main import main

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
TEST_FILE = re.compile(r"tests/[\w/]+\.py")
MARK = re.compile(r"<!-- (.+): made by (\S+) -->\n")
COMMAND = re.compile(r"^ *(?:python|hf-dxprivacy) .*$", re.MULTILINE)


def commands(program: str) -> list[tuple[str, str]]:
    """Return the command lines of a program on all pages: the page, and the line."""
    found = []
    for name, page in zip(NAMES, PAGES, strict=True):
        for line in COMMAND.findall(page.read_text("utf-8").replace("\\\n", " ")):
            if line.split()[0] == program:
                found.append((name, " ".join(line.split()[1:])))
    return sorted(set(found))


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    prose = FENCE.sub("", page.read_text("utf-8"))
    headings = re.findall(r"^#+ (.*)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_every_page_is_looked_at() -> None:
    assert {"README.md", "docs/guarantee.md", "docs/limitations.md", "docs/notation.md"} <= {*NAMES}
    assert len(commands("python")) > 30
    assert len({line.split()[0] for _, line in commands("hf-dxprivacy")}) >= 5


@pytest.mark.parametrize("name", NAMES)
def test_relative_links_resolve(name: str) -> None:
    page = ROOT / name
    for link in LINK.findall(FENCE.sub("", page.read_text("utf-8"))):
        if "://" in link or link.startswith("mailto:"):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{name} links to {link}, which is not there"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{name} links to {link}: no such heading"


def test_names_of_the_notation_are_in_the_package() -> None:
    files = {path.name: path.read_text("utf-8") for path in ROOT.glob("hf_dxprivacy/**/*.py")}
    known = set(re.findall(r"\w+", "".join(files.values()))) | {*files}
    code = re.findall(r"`([^`]+)`", (ROOT / "docs/notation.md").read_text("utf-8"))
    names = {name for part in code for name in re.findall(r"[A-Za-z_]\w+(?:\.py)?", part)}
    assert len(names) > 80
    assert sorted(names - known) == []


@pytest.mark.parametrize("name", NAMES)
def test_named_test_files_exist(name: str) -> None:
    named = {*TEST_FILE.findall((ROOT / name).read_text("utf-8"))}
    missing = sorted(path for path in named if not (ROOT / path).is_file())
    assert not missing, f"{name} names tests that do not exist: {missing}"


@pytest.mark.parametrize("name", NAMES)
def test_parts_that_a_script_makes_end_and_hold_something(name: str) -> None:
    page = (ROOT / name).read_text("utf-8")
    for part, script in MARK.findall(page):
        assert (ROOT / script).is_file(), f"{name}: there is no {script}"
        _, _, rest = page.partition(f"<!-- {part}: made by {script} -->\n")
        content, end, _ = rest.partition(f"<!-- end of {part} -->")
        assert end, f"{name}: the part {part!r} does not end"
        assert content.strip(), f"{name}: the part {part!r} is empty"


@pytest.mark.parametrize(("name", "command"), commands("hf-dxprivacy"))
def test_commands_of_the_program_are_what_it_takes(
    name: str, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    verb, *arguments = shlex.split(command, comments=True)
    verbs = [verb, arguments[0]] if verb == "audit" else [verb]
    assert main([*verbs, "--help"]) == 0
    shown = capsys.readouterr().out
    for option in (argument for argument in arguments if argument.startswith("--")):
        assert re.search(rf"{option}\b", shown), f"{name}: {verb} has no {option}"


@pytest.mark.parametrize(("name", "command"), commands("python"))
def test_scripts_exist_and_have_their_options(name: str, command: str) -> None:
    script, *arguments = shlex.split(command, comments=True)
    shared = ("benchmarks/common.py", "examples/sweeps.py")
    text = "".join((ROOT / file).read_text("utf-8") for file in (script, *shared))
    for option in (argument for argument in arguments if argument.startswith("--")):
        assert f'"{option}"' in text, f"{name}: {script} has no {option}"


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    """What `make test-oldest` installs."""
    needed = (ROOT / "pyproject.toml").read_text("utf-8").partition("\ndependencies = [")[2]
    bounds = dict(re.findall(r'"([\w-]+)>=([\d.]+)"', needed.partition("\n]")[0]))
    pinned = (ROOT / "constraints-oldest.txt").read_text("utf-8")
    pins = dict(re.findall(r"^([\w-]+)==([\d.]+)$", pinned, re.MULTILINE))
    assert len(bounds) > 10
    assert [n for n, bound in bounds.items() if not f"{pins[n]}.".startswith(f"{bound}.")] == []
