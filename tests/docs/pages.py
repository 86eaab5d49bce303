"""What a page of the documentation tells the reader to type, and what it shows of the answer.

A fence of ``console`` (or of no language) holds ``$ command`` lines with their output below, one of ``sh``
a command a line. ``...`` on a line of its own stands for any lines. A comment before a fence says what is
not to be taken for granted: ``<!-- exit 1 -->``, ``<!-- exit 0 or 1 -->``, ``<!-- not run: why -->``. What
commands in ``sh`` find depends on the reader's traces, so that they may exit with 1.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"(?:^<!-- ([^\n]*?) -->\n)?^```([\w ]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_PLAIN = re.compile(r"(?:(?:tracehunch|pytest|python|torchrun) [^:].*\n|\n)+")
_INLINE = re.compile(r"`(tracehunch [^`]+)`")


@dataclass(frozen=True)
class Shown:
    """A command, the output below it, and the remark before its fence."""

    command: str
    output: str
    remark: str

    @property
    def codes(self) -> tuple[int, ...]:
        """Exit codes that are as they should be."""
        found = re.fullmatch(r"exit (\d)(?: or (\d))?", self.remark)
        return tuple(int(code) for code in found.groups() if code) if found else (0,)

    @property
    def is_run(self) -> bool:
        return not self.remark.startswith("not run: ")


@dataclass(frozen=True)
class File:
    """A file that the page shows, for the commands after it."""

    name: str
    text: str


def pages() -> list[Path]:
    """Return all pages, but for those that are made from the package."""
    return [
        one for one in sorted(DOCS.rglob("*.md")) if "<!-- made by" not in one.read_text(encoding="utf-8")
    ]


def steps(page: str) -> Iterator[Shown | File]:
    """Yield commands and files from top to bottom."""
    for remark, language, text in _FENCE.findall(page):
        name = re.match(r"# (\w+\.\w+)\n", text)
        if language in {"console", "", "sh"}:
            yield from _commands(text, remark, is_plain=language == "sh" or bool(_PLAIN.fullmatch(text)))
        elif name or language == "toml":
            yield File(name.group(1) if name else "hunch.toml", text)


def inline(page: str) -> list[str]:
    """Return commands within sentences."""
    return _INLINE.findall(_FENCE.sub("", page))


def _commands(text: str, remark: str, *, is_plain: bool) -> Iterator[Shown]:
    text = text.replace("\\\n", " ")
    if is_plain:
        lines = [re.sub(r"\s+#.*", "", line).strip() for line in text.splitlines()]
        yield from (Shown(line, "", remark or "exit 0 or 1") for line in lines if line and line[0] != "#")
        return
    parts = re.split(r"^\$ (.+)\n", text, flags=re.MULTILINE)
    for command, output in zip(parts[1::2], parts[2::2], strict=True):
        yield Shown(re.sub(r"\s+#.*", "", command).strip(), output, remark)


def agrees(shown: str, came: str) -> bool:
    """Whether what came is as shown, where ``...`` stands for any lines, and files may be more or fewer."""
    shown, came = (_even(text) for text in (shown, came))
    parts = [re.escape(part) for part in re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE)]
    return re.fullmatch(r"(?:.*\n)*?".join(parts), came) is not None


def _even(text: str) -> str:
    text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    return re.sub(r"\b\d+ files\b", "N files", text)
