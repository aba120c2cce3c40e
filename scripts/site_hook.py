"""What mkdocs.yml adds to docs/: files of the repository, notebooks, and the API reference."""

import ast
import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PACKAGE = "hf_dxprivacy"
START = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
FENCE = re.compile(r"^(?P<fence>`{3,}).*?^(?P=fence)$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?<=\]\()(?P<path>[^)\s#:]+)(?P<anchor>#[^)\s]*)?(?=\))")
IN_DOCSTRING = re.compile(r"\bdocs/([\w/-]+)\.md\b")
FRONT_MATTER = re.compile(r"\A---\n.*?^---\n", re.MULTILINE | re.DOTALL)


def public_names(module: Path) -> dict[str, str]:
    """Return the public names of a module and where each is defined; nothing is imported."""
    tree = ast.parse(module.read_text("utf-8"))
    path = module.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
    path = path.removesuffix(".__init__")
    imported = {
        name.name: f"{node.module}.{name.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for name in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return {n: imported.get(n, f"{path}.{n}") for n in ast.literal_eval(node.value)}
    defined = [node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)]
    return {name: f"{path}.{name}" for name in defined if not name.startswith("_")}


def api() -> dict[str, dict[str, str]]:
    """Return the public names of each public module, the package itself first."""
    package = ROOT / PACKAGE
    modules = [*package.glob("*/__init__.py"), *package.glob("integrations/[!_]*.py")]
    modules += [package / "errors.py", package / "results.py"]
    found = {}
    for module in [package / "__init__.py", *sorted(modules)]:
        path = module.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".")
        if names := public_names(module):
            found[path.removesuffix(".__init__")] = names
    return found


def api_pages() -> dict[str, str]:
    """Return the pages of the API reference; what a page has shown, a later one links to."""
    shown: set[str] = set()
    pages = {}
    for module, names in api().items():
        bare = "{members: false, show_root_heading: false, show_root_toc_entry: false}"
        parts = [f"# {module}", f"::: {module}\n    options: {bare}"]
        # What is inherited stands on the first page only: bases of mechanisms are public.
        options = f"{{inherited_members: {str(module == PACKAGE).lower()}}}"
        for name, path in sorted(names.items(), key=lambda item: item[0].lower().strip("_")):
            again = f"## {name}\n\nSee [`{name}`][{path}]."
            parts.append(again if path in shown else f"::: {path}\n    options: {options}")
            shown.add(path)
        pages[f"api/{module}.md"] = "\n\n".join(parts)
    return pages


def site_path(path: str) -> str:
    """Return where a file of the repository is on the site."""
    path = path.replace(".ipynb", ".md") if path.startswith("docs/notebooks/") else path
    return "index.md" if path == "README.md" else path.removeprefix("docs/")


def repository_path(page: str) -> str:
    """Return the inverse of `site_path`."""
    if page == "index.md":
        return "README.md"
    in_docs = page.startswith("notebooks/") or (ROOT / "docs" / page).exists()
    return f"docs/{page}" if in_docs else page


def linked(source: str, path: str) -> str:
    """Return the path, from the root, of what a file links to."""
    found = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if source.startswith("model_cards/") and not (ROOT / found).exists():
        return f"{PACKAGE}/builtin/{Path(source).stem}/{path}"  # beside the artifact itself
    return found


def prose(text: str) -> Iterator[tuple[bool, str]]:
    """Yield the parts of a page, and whether each is prose and no code block."""
    end = 0
    for block in FENCE.finditer(text):
        yield True, text[end : block.start()]
        yield False, block[0]
        end = block.end()
    yield True, text[end:]


def page_of(path: str) -> str:
    """Return the text of a page of the repository, without its header."""
    return FRONT_MATTER.sub("", (ROOT / path).read_text("utf-8"))


def links(path: str) -> set[str]:
    """Return the files of the repository that a page links to."""
    text = "".join(part for is_prose, part in prose(page_of(path)) if is_prose)
    found = (linked(path, link["path"]) for link in LINK.finditer(text))
    return {path for path in found if (ROOT / path).is_file()}


def outside() -> list[str]:
    """Return the files outside docs/ that the site has: pages, and all that pages link to."""
    pages = [*ROOT.glob("model_cards/*.md"), *ROOT.glob("docs/**/*.md")]
    waiting, found = [*START, *(page.relative_to(ROOT).as_posix() for page in pages)], set()
    while waiting:
        path = waiting.pop()
        if path not in found and path.endswith(".md"):
            waiting += links(path)
        found.add(path)
    return sorted(path for path in found if not path.startswith("docs/"))


def rendered(output: dict[str, Any]) -> str:
    """Return an output of a notebook as Markdown."""
    data = output.get("data") or {"text/plain": output["text"]}
    if "text/html" in data:
        return f'<div class="output">\n{"".join(data["text/html"])}\n</div>'
    if "image/png" in data:
        image = "".join(data["image/png"].split())
        return f'<img alt="Picture that the cell draws" src="data:image/png;base64,{image}">'
    return f"````{{.text .output}}\n{''.join(data['text/plain']).rstrip()}\n````"


def notebook_page(path: Path) -> str:
    """Return a notebook as Markdown: its cells and what they printed."""
    parts = []
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
        else:
            parts.append(f"````python\n{source}\n````")
            parts += map(rendered, cell["outputs"])
    title, _, rest = "\n\n".join(parts).partition("\n")
    return f'{title}\n\n<a href="{path.name}" download>Download this notebook</a>\n{rest}\n'


def on_config(config: MkDocsConfig) -> None:
    """Fill the navigation with the pages of the API reference."""
    assert config.nav is not None
    (section,) = (part for part in config.nav if "API reference" in part)
    section["API reference"] = [
        {name.removeprefix(f"{PACKAGE}."): f"api/{name}.md"} for name in api()
    ]


def on_files(files: Files, /, *, config: MkDocsConfig) -> None:
    """Add pages and files that are not in docs/."""
    for page, text in api_pages().items():
        files.append(File.generated(config, page, content=text))
    for notebook in sorted(ROOT.glob("docs/notebooks/*.ipynb")):
        page = f"notebooks/{notebook.stem}.md"
        files.append(File.generated(config, page, content=notebook_page(notebook)))
    for path in outside():
        if path.endswith(".md"):
            files.append(File.generated(config, site_path(path), content=page_of(path)))
        else:
            files.append(File.generated(config, site_path(path), abs_src_path=str(ROOT / path)))


def on_page_markdown(markdown: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links between files of the repository to where these are on the site."""
    source = repository_path(page.file.src_uri)
    folder = posixpath.dirname(page.file.src_uri) or "."

    def moved(link: "re.Match[str]") -> str:
        target = site_path(linked(source, link["path"]))
        return posixpath.relpath(target, folder) + (link["anchor"] or "")

    return "".join(
        LINK.sub(moved, part) if is_prose else part for is_prose, part in prose(markdown)
    )


def on_page_content(html: str, /, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link the pages that docstrings name."""

    def link(named: "re.Match[str]") -> str:
        file = files.get_file_from_path(f"{named[1]}.md")
        if file is None or file.page is None:
            raise PluginError(f"{page.file.src_uri} names {named[0]}, which is not there")
        return f'<a href="{file.url_relative_to(page.file)}">{file.page.title}</a>'

    return IN_DOCSTRING.sub(link, html) if page.file.src_uri.startswith("api/") else html
