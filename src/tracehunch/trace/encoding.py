"""Byte order marks and UTF-16 -> UTF-8."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehunch.trace.notes import Notes
    from tracehunch.trace.scan import Text

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_UNMARKED = ((b"{\0", "utf-16-le"), (b"[\0", "utf-16-le"), (b"\0{", "utf-16-be"), (b"\0[", "utf-16-be"))


def as_utf8(data: Text, notes: Notes) -> Text:
    """Return the text in UTF-8 without a mark: a part of ``data`` itself where it is that already."""
    head = bytes(data[:4])
    if head.startswith(codecs.BOM_UTF8):
        return data[len(codecs.BOM_UTF8) :]
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return _transcode(data[len(mark) :], encoding, notes)
    for start, encoding in _UNMARKED:
        if head.startswith(start):
            return _transcode(data, encoding, notes)
    return data


def _transcode(data: Text, encoding: str, notes: Notes) -> Text:
    try:
        text = codecs.decode(data, encoding)
    except UnicodeDecodeError as error:
        text = codecs.decode(data, encoding, "replace")
        notes.say(
            "invalid-encoding", f"the text is no valid {encoding} from byte {error.start:,} on", lossy=True
        )
    notes.say("encoding", f"the text is {encoding.upper()}, read as such", lossy=False)
    return memoryview(text.encode("utf-8", "replace"))
