"""The site builds without a warning, asks nothing of any other host, and has no link that leads nowhere."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

mkdocs = pytest.importorskip("mkdocs", reason="mkdocs is not installed (pip install '.[docs]')")

ROOT = Path(__file__).parents[2]
LOADS = {"src", "srcset", "poster", "data", "action"}


class Page(HTMLParser):
    """What a page loads, where it leads, what can be led to, and its paragraphs."""

    def __init__(self, path):
        super().__init__()
        self.loaded, self.links, self.ids, self.paragraphs = [], [], set(), []
        self._paragraph = None
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in LOADS or (tag == "link" and name == "href"):
                self.loaded.append(value or "")
            elif name == "href":
                self.links.append(value or "")
            elif name in {"id", "name"}:
                self.ids.add(value)
        if tag == "p":
            self._paragraph = ""

    def handle_endtag(self, tag):
        if tag == "p" and self._paragraph is not None:
            self.paragraphs.append(self._paragraph)
            self._paragraph = None

    def handle_data(self, data):
        if self._paragraph is not None:
            self._paragraph += data


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build the site; ``strict`` in mkdocs.yml makes each warning an error."""
    from mkdocs.commands.build import build  # noqa: PLC0415  # not installed where only the package is tested
    from mkdocs.config import load_config  # noqa: PLC0415  # as above

    folder = tmp_path_factory.mktemp("site")
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder))
    assert config.strict
    build(config)
    return folder


@pytest.fixture(scope="module")
def built(site):
    return {path: Page(path) for path in site.rglob("*.html") if path.name != "404.html"}


def test_every_page_of_docs_is_built(site):
    for page in (ROOT / "docs").rglob("*.md"):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file()


def test_nothing_is_loaded_from_elsewhere(site, built):
    for path, page in built.items():
        for address in page.loaded:
            assert not urlsplit(address).netloc, (path, address)
            assert (path.parent / unquote(urlsplit(address).path)).is_file(), (path, address)
    for sheet in site.rglob("*.css"):
        text = re.sub(r"/\*.*?\*/", "", sheet.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.findall(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)]*", text), sheet


def test_no_link_leads_nowhere(site, built):
    for path, page in built.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or link in {"", "#"}:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_relative_to(site), (path, link)
            assert target.is_file(), (path, link)
            if parts.fragment and target in built:
                assert unquote(parts.fragment) in built[target].ids, (path, link)


def test_no_list_or_table_became_a_paragraph(built):
    for path, page in built.items():
        for text in page.paragraphs:
            assert not re.search(r"^ *(?:[*-]|\d+\.) ", text, re.MULTILINE), (path, text[:200])
            assert not re.search(r"^\|.*\|$", text, re.MULTILINE), (path, text[:200])
            assert "```" not in text, (path, text[:200])
