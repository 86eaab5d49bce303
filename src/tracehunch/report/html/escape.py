"""Text of a trace in HTML: it reads as it is, and never acts."""

from __future__ import annotations

import json
from typing import Any, Final

from tracehunch.units import elide, printable, shorten

_HTML: Final = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;", "`": "&#96;"}
)
_JSON: Final = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
)
_NAME_LIMIT: Final = 300
_NAME_SHOWN: Final = 90


def text(raw: str) -> str:
    """Return any text for an element's content or a quoted attribute."""
    return printable(raw).translate(_HTML)


def code(raw: str, css: str = "") -> str:
    """Return a name as code."""
    marked = f' class="{css}"' if css else ""
    return f"<code{marked}>{text(shorten(raw, _NAME_LIMIT))}</code>"


def name(raw: str) -> str:
    """Return a name that may be long as code, cut in its middle; the whole is its title, for a pointer."""
    short = elide(raw, _NAME_SHOWN)
    titled = "" if short == raw else f' title="{text(raw)}"'
    return f"<code{titled}>{text(short)}</code>"


def slug(raw: str) -> str:
    """Return an id for a link: letters, digits and dashes."""
    kept = "".join(one if one.isascii() and one.isalnum() else "-" for one in raw.lower())
    return "-".join(part for part in kept.split("-") if part)[:60] or "x"


def json_block(name: str, value: Any) -> str:
    """Return data as a script block that no browser runs, and that no text in it can end."""
    packed = json.dumps(value, separators=(",", ":"), ensure_ascii=True, allow_nan=False).translate(_JSON)
    return f'<script type="application/json" id="{slug(name)}">{packed}</script>'
