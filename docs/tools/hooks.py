"""What mkdocs does besides: files of the repository that pages link to become pages of the site."""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, InclusionLevel

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
_LINK = re.compile(r"\]\((\.\./[^)#\s]+)\)")
_CHECK = re.compile(r"src/tracehunch/checks/(\w+)\.py")
_FENCE = re.compile(r"^(```\w+) [\w ]+$", re.MULTILINE)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for each file outside docs/ that a page links to."""
    wanted = {
        target
        for page in files.documentation_pages()
        for link in _LINK.findall(page.content_string)
        if (target := _outside(page.src_uri, link)) and not _CHECK.fullmatch(target)
    }
    for target in sorted(wanted):
        files.append(
            File.generated(
                config,
                _page_of(target),
                content=_source(ROOT / target),
                inclusion=InclusionLevel.NOT_IN_NAV,
            )
        )
    return files


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Point links that leave docs/ at the pages made for them; keep of a fence's first line what is known."""
    here = page.file.src_uri

    def replaced(found: re.Match[str]) -> str:
        target = _outside(here, found.group(1))
        if not target:
            return found.group()
        check = _CHECK.fullmatch(target)
        made = f"reference/findings.md#{check.group(1).replace('_', '-')}" if check else _page_of(target)
        return f"]({posixpath.relpath(made, posixpath.dirname(here) or '.')})"

    return _FENCE.sub(r"\1", _LINK.sub(replaced, markdown))


def _outside(page: str, link: str) -> str:
    """Return the path in the repository of a link that leaves docs/; "" for one that stays."""
    target = posixpath.normpath(posixpath.join("docs", posixpath.dirname(page), link))
    return "" if target.startswith("docs/") or not (ROOT / target).exists() else target


def _page_of(target: str) -> str:
    return f"source/{target}.md"


def _source(path: Path) -> str:
    """Return a file, or the files of a folder, as Markdown."""
    text = f"# {path.relative_to(ROOT).as_posix()}\n"
    files = sorted(one for one in path.rglob("*") if one.is_file() and "__pycache__" not in one.parts)
    for file in files if path.is_dir() else [path]:
        text += f"\n## {file.relative_to(path).as_posix()}\n" if path.is_dir() else ""
        text += (
            _notebook(file)
            if file.suffix == ".ipynb"
            else _fenced(file.read_text(encoding="utf-8"), file.suffix)
        )
    return text


def _notebook(path: Path) -> str:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    sources = [(cell["cell_type"], "".join(cell["source"])) for cell in cells]
    return "".join(_fenced(text, ".py") if kind == "code" else f"\n{text}\n" for kind, text in sources)


def _fenced(text: str, suffix: str) -> str:
    language = {".py": "python", ".toml": "toml", ".yml": "yaml", ".md": "markdown"}.get(suffix, "text")
    return f"\n````{language}\n{text.rstrip()}\n````\n"
