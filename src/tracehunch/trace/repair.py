"""Text of one event that is no JSON -> JSON, changing only what is certainly wrong."""

from __future__ import annotations

import re
from collections import Counter

import msgspec

from tracehunch.trace.notes import Trouble
from tracehunch.trace.scan import TOKEN

KEPT_DEPTH = 200
"""Arguments nested deeper are cut: no profiler writes them, and decoders recurse."""

WORDS = {
    Trouble.ESCAPE: "invalid escape, a lone backslash",
    Trouble.EATEN_QUOTE: "a backslash before a closing quote",
    Trouble.CONTROL: "raw control character",
    Trouble.UTF8: "bytes that are not UTF-8",
    Trouble.SURROGATE: "half a surrogate pair",
    Trouble.NON_FINITE: "NaN or infinity, which are not finite",
    Trouble.BARE_TOKEN: "bare token",
    Trouble.INNER_COMMA: "superfluous comma",
    Trouble.NESTED: "nested too deep",
}
"""All that ``repair`` may say it changed."""

_Json = msgspec.json.Decoder(msgspec.Raw)
_SURROGATE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_ESCAPE = re.compile(r'\\(?:(["\\/bfnrt]|u[0-9a-fA-F]{4})|)')
_CONTROL = re.compile(r"[\x00-\x1f]")
_PARTS = re.compile(
    r'(?P<string>"[^"\\]*+(?:\\.[^"\\]*+)*+")'
    r"|(?P<comma>,(?=\s*+[}\]]))"
    r"|(?P<hole>:\s*+(?=[,}\]]))"
    r"|(?P<word>[^\s,:\[\]{}\"]++(?:[ \t]++[^\s,:\[\]{}\"]++)*+)",
    re.DOTALL,
)
_LITERAL = re.compile(r"true|false|null|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_NON_FINITE = re.compile(r"[+-]?(?:nan|inf(?:inity)?|\d+\.#\w+)(?:\(\w*\))?", re.IGNORECASE)
_PYTHON = {"True": "true", "False": "false", "None": "null"}
_EATEN_QUOTE = re.compile(r'(?<!\\)\\"(?=\s*,\s*"[A-Za-z][^"\\\n]{0,60}"\s*:|\s*\}\s*(?:[,}]|\Z))')


def is_sound(text: bytes) -> bool:
    """Whether this is one JSON value whose strings can be decoded."""
    try:
        _Json.decode(text)
        plain = text.decode("utf-8")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return "\\u" not in plain or not any(match["lone"] for match in _SURROGATE.finditer(plain))


def repair(text: bytes) -> tuple[bytes, Counter[Trouble]] | None:
    """Return the text as sound JSON and what was changed; None where no certain change makes it so."""
    troubles: Counter[Trouble] = Counter()
    try:
        plain = text.decode("utf-8")
    except UnicodeDecodeError:
        plain = text.decode("utf-8", "replace")
        troubles[Trouble.UTF8] += 1
    if "\\" in plain:  # the most frequent trouble (Windows paths) on a short way
        data = _ESCAPE.sub(_double, plain).encode("utf-8", "replace")
        if is_sound(data):
            lone = sum(1 for match in _ESCAPE.finditer(plain) if match[1] is None)
            return data, troubles + Counter({Trouble.ESCAPE: lone})
    elif plain.count('"') % 2:
        return None  # no repair but that of an eaten quote changes how many there are
    for attempt, more in ((plain, Counter[Trouble]()), _without_eaten_quotes(plain)):
        fixed, found = _fix(attempt)
        data, cut = _prune(fixed.encode("utf-8", "replace"))
        if is_sound(data):
            return data, troubles + more + found + cut
        if _EATEN_QUOTE.search(plain) is None:
            break
    return None


def _without_eaten_quotes(text: str) -> tuple[str, Counter[Trouble]]:
    fixed, _ = _EATEN_QUOTE.subn(r'\\\\"', text)
    return fixed, Counter({Trouble.EATEN_QUOTE: 1})


def _fix(text: str) -> tuple[str, Counter[Trouble]]:
    """Strings, bare words, superfluous commas and holes put right."""
    found: Counter[Trouble] = Counter()

    def fixed(match: re.Match[str]) -> str:
        part = match[0]
        if match.lastgroup == "string":
            return part if part.isprintable() and "\\" not in part else _fix_string(part, found)
        if match["comma"] is not None:
            found[Trouble.INNER_COMMA] += 1
            return ""
        if match["hole"] is not None:
            found[Trouble.BARE_TOKEN] += 1
            return ": null"
        if _LITERAL.fullmatch(part):
            return part
        found[Trouble.NON_FINITE if _NON_FINITE.fullmatch(part) else Trouble.BARE_TOKEN] += 1
        return _PYTHON.get(part, "null")

    return _PARTS.sub(fixed, text), found


def _fix_string(string: str, found: Counter[Trouble]) -> str:
    fixed, controls = _CONTROL.subn(lambda m: f"\\u{ord(m[0]):04x}", string)
    found[Trouble.CONTROL] += controls
    if "\\" in fixed:
        found[Trouble.ESCAPE] += sum(1 for m in _ESCAPE.finditer(fixed) if m[1] is None)
        fixed = _ESCAPE.sub(_double, fixed)
        if any(match["lone"] for match in _SURROGATE.finditer(fixed)):
            found[Trouble.SURROGATE] += 1
            fixed = _SURROGATE.sub(lambda m: "\\ufffd" if m["lone"] else m[0], fixed)
    return fixed


def _double(escape: re.Match[str]) -> str:
    """Return an escape as it is, a lone backslash doubled."""
    return escape[0] if escape[1] is not None else "\\\\"


def _prune(text: bytes) -> tuple[bytes, Counter[Trouble]]:
    """Containers deeper than KEPT_DEPTH replaced by null."""
    depth, start, kept, parts = 0, 0, 0, []
    for match in TOKEN.finditer(text):
        token = match[0]
        if token in (b"{", b"["):
            depth += 1
            if depth == KEPT_DEPTH:
                start = match.start()
        elif len(token) == 1:
            if depth == KEPT_DEPTH:
                parts += [text[kept:start], b"null"]
                kept = match.end()
            depth -= 1
    return b"".join([*parts, text[kept:]]), Counter({Trouble.NESTED: 1} if parts else {})
