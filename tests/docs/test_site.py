"""The site: it builds without a warning, has every public name, and asks for nothing elsewhere."""

import importlib
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import hf_dxprivacy
from machine import PATIENCE

ROOT = Path(__file__).parents[2]
NAMED = ("hf_dxprivacy.errors", "hf_dxprivacy.results")
LOADED = re.compile(r"<(?:script|img|iframe|link rel=\"stylesheet\")[^>]*\b(?:src|href)=\"([^\"]*)")


def public() -> list[tuple[str, str]]:
    """Return the modules with public names, and these, as Python has them."""
    rooms = [room.name for room in pkgutil.iter_modules(hf_dxprivacy.__path__, "hf_dxprivacy.")]
    found = []
    for room in ["hf_dxprivacy", *rooms]:
        if room.endswith("__main__"):
            continue
        module = importlib.import_module(room)
        defined = [n for n, v in vars(module).items() if getattr(v, "__module__", "") == room]
        names = getattr(module, "__all__", defined if room in NAMED else [])
        found += [(room, name) for name in names if room not in NAMED or name[0] != "_"]
    for path in ROOT.glob("hf_dxprivacy/integrations/[!_]*.py"):
        adapters = re.findall(r"^(?:class|def) ([^\W_]\w*)", path.read_text("utf-8"), re.MULTILINE)
        found += [(f"hf_dxprivacy.integrations.{path.stem}", name) for name in adapters]
    return found


def build(root: Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    """Build a site as `make docs` does: not with --quiet, which hides warnings from --strict."""
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        encoding="utf-8",
        timeout=PATIENCE,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(ROOT, folder)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"WARNING|ERROR|Deprecat", done.stdout + done.stderr) == []
    return folder


@pytest.mark.cluster
def test_broken_links_fail(tmp_path: Path) -> None:
    """With the validation of the site, without its theme and plugins."""
    lines = (ROOT / "mkdocs.yml").read_text("utf-8").split("validation:")[1].split("hooks:")[0]
    (tmp_path / "mkdocs.yml").write_text(f"site_name: x\nvalidation:{lines}", "utf-8")
    (tmp_path / "docs").mkdir()
    broken = ["missing.md", "index.md#missing", "/index.md", "folder/"]
    links = "".join(f"[link]({link})\n" for link in broken)
    (tmp_path / "docs/index.md").write_text(f"# Title\n\n{links}", "utf-8")
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode == 1
    warnings = "".join(re.findall(r"^WARNING.*\n", done.stderr, re.MULTILINE))
    assert [link for link in broken if f"'{link}'" not in warnings] == []


def test_every_page_has_a_place_in_the_navigation() -> None:
    placed = re.findall(r"^ +- (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    notebooks = {path.stem for path in ROOT.glob("docs/notebooks/*.ipynb")}
    assert {f"notebooks/{name}.md" for name in notebooks} <= {*placed}
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in ROOT.glob("docs/**/*.md")}
    assert pages <= {*placed}
    assert len(placed) == len({*placed})


@pytest.mark.cluster
def test_the_reference_has_every_public_name(site: Path) -> None:
    names = public()
    assert len(names) > 200
    missing = []
    for module, name in names:
        page = (site / "api" / f"{module}.html").read_text("utf-8")
        if not re.search(rf'id="[\w.]*\.{name}"', page) and f"><code>{name}</code></a>" not in page:
            missing.append(f"{module}.{name}")
    assert not missing


@pytest.mark.cluster
def test_nothing_is_loaded_from_another_host(site: Path) -> None:
    loaded = {
        (page.name, address)
        for page in site.glob("**/*.html")
        for address in LOADED.findall(page.read_text("utf-8"))
    }
    assert len(loaded) > 100
    assert [found for found in loaded if re.match(r"(?:\w+:)?//", found[1])] == []
    sheets = "".join(sheet.read_text("utf-8") for sheet in site.glob("**/*.css"))
    assert re.findall(r"url\(\"?(?:https?:)?//", sheets) == []


@pytest.mark.cluster
def test_the_start_page_is_the_readme(site: Path) -> None:
    page = (site / "index.html").read_text("utf-8")
    for heading in re.findall(r"^## (\w+)", (ROOT / "README.md").read_text("utf-8"), re.MULTILINE):
        assert f">{heading}" in page
    assert 'href="model_cards/english.html"' in page
    assert 'href="guarantee.html"' in page
    assert '"location":"guarantee.html"' in (site / "search/search_index.json").read_text("utf-8")
