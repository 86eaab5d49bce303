"""A page: sections, styles and scripts in one file, with a policy that forbids everything external."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from tracehunch.report.html.escape import json_block, text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tracehunch.report.html.section import Section

_BASE: Final = "base"


def page(title: str, subtitle: str, sections: Sequence[Section], *, ending: str = "") -> bytes:
    """Return the page, UTF-8.

    `subtitle` and `ending` are HTML already. The policy allows the one style sheet and the one script that
    are in the page, by their hash; no request, picture from elsewhere, frame, form or plug-in.
    """
    styles = _joined((_BASE, *_names(section.styles for section in sections)), "css")
    scripts = _joined((_BASE, *_names(section.scripts for section in sections)), "js")
    blocks = [json_block(f"data-{one.id}", one.data) for one in sections if one.data is not None]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_policy(styles, scripts)}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            '<meta name="referrer" content="no-referrer">',
            f"<title>{text(title)}</title>",
            f"<style>{styles}</style>",
            "</head>",
            "<body>",
            '<a class="skip" href="#main">Skip to the report</a>',
            _header(title, subtitle, sections),
            '<main id="main">',
            *(_section(one) for one in sections),
            "</main>",
            f"<footer>{ending}</footer>" if ending else "",
            *blocks,
            f"<script>{scripts}</script>",
            "</body>",
            "</html>",
            "",
        ]
    ).encode()


@cache
def asset(name: str) -> str:
    """Return one of our own style sheets or scripts."""
    return files("tracehunch.report.html").joinpath("assets", name).read_text(encoding="utf-8")


def _names(groups: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for group in groups for name in group))


def _joined(names: Iterable[str], ending: str) -> str:
    return "\n".join(asset(f"{name}.{ending}") for name in names)


def _policy(styles: str, scripts: str) -> str:
    allowed = {
        "default-src": "'none'",
        "style-src": _hash(styles),
        "script-src": _hash(scripts),
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{what} {who}" for what, who in allowed.items())


def _hash(source: str) -> str:
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"


def _header(title: str, subtitle: str, sections: Sequence[Section]) -> str:
    links = "".join(f'<li><a href="#{one.id}">{text(one.title)}</a></li>' for one in sections)
    return (
        f'<header><div class="head"><h1>{text(title)}</h1>'
        '<button type="button" id="theme" hidden aria-label="Light or dark theme">Theme</button></div>'
        f'<div class="subtitle">{subtitle}</div></header>'
        f'<nav aria-label="Sections"><ul>{links}</ul></nav>'
    )


def _section(one: Section) -> str:
    aside = f' <span class="aside">{text(one.aside)}</span>' if one.aside else ""
    return (
        f'<section id="{one.id}" aria-labelledby="h-{one.id}">'
        f'<h2 id="h-{one.id}"><a class="anchor" href="#{one.id}">{text(one.title)}</a>{aside}</h2>'
        f"{one.html}</section>"
    )
