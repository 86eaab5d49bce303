"""The top level of a trace file: its keys, and the arrays of events among them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Protocol

from tracehunch.errors import ReadError
from tracehunch.trace.foreign import refuse_keys, refuse_text
from tracehunch.trace.notes import Notes, Trouble
from tracehunch.trace.repair import WORDS, is_sound, repair
from tracehunch.trace.scan import STRING, Text, at, skip_blank, value_end
from tracehunch.trace.splitter import EVENT_START, Ending
from tracehunch.trace.text import count_of, printable
from tracehunch.trace.values import decode

EVENTS = re.compile(rb'"traceEvents"\s*+:\s*+(?=\[)')
_KILLED = "the job was killed, or the disk is full"
_DO_AGAIN = "export the trace again, or take a whole copy of the file"


class Arrays(Protocol):
    """What reads the events: ``array`` from behind an opening bracket, to where they end."""

    @property
    def n_entries(self) -> int:
        """Entries so far."""

    @property
    def n_events(self) -> int:
        """Those of them that are events."""

    def array(self, start: int) -> tuple[int, Ending]:
        """Return where the array ended, and how."""


@dataclass(slots=True)
class Document:
    """What stands outside the events."""

    keys: dict[str, Any] = field(default_factory=dict)
    arrays: int = 0  # how many traceEvents there were
    pos: int = 0
    done: bool = False  # nothing more can be read


def read_document(text: Text, reader: Arrays, notes: Notes) -> dict[str, Any]:
    """Walk the text's top level: the events go to ``reader``, every other key is returned.

    Raises ReadError where there is no trace in it.
    """
    document = Document(pos=skip_blank(text, 0))
    opening = at(text, document.pos)
    if opening == b"[":
        _bare_array(text, document, reader, notes)
    elif opening == b"{":
        _object(text, document, reader, notes)
    else:
        raise refuse_text(text)
    if not document.done:
        _say_what_follows(text, document.pos, notes)
    return document.keys


def _bare_array(text: Text, document: Document, reader: Arrays, notes: Notes) -> None:
    """Read the array form, which may lack its closing bracket."""
    start = document.pos
    if at(text, skip_blank(text, start + 1)) == b"[":
        raise _no_event(start, is_whole=value_end(text, start) is not None)
    document.pos, ending = reader.array(start + 1)
    document.arrays = 1
    if at(text, skip_blank(text, start + 1)) == b"{":
        _refuse_nothing(text, start, ending, reader, notes)
    if reader.n_events == 0 and (reader.n_entries or ending is not Ending.CLOSED):
        raise _no_event(start, is_whole=ending is Ending.CLOSED)
    document.done = ending is not Ending.CLOSED
    if ending is not Ending.END_OF_TEXT:
        _say_how_it_ended(text, document.pos, ending, reader, notes)


def _no_event(start: int, *, is_whole: bool) -> ReadError:
    more = "" if is_whole else ", and the text ends in the middle of it (truncated)"
    return ReadError(
        "not a trace",
        f"the JSON list that begins at byte {start:,} holds no trace event{more}",
        "give the file that torch.profiler exported (an object with traceEvents)",
    )


def _object(text: Text, document: Document, reader: Arrays, notes: Notes) -> None:
    document.pos = skip_blank(text, document.pos + 1)
    while not document.done and at(text, document.pos) != b"}":
        if not _one_key(text, document, reader, notes):
            _resume(text, document, reader, notes)
    if not document.done:
        document.pos += 1
    if document.arrays == 0:
        refuse_keys(document.keys)
        raise ReadError(
            "not a trace: no traceEvents key",
            f"its keys are {_names(document.keys)}" if document.keys else "it is an empty JSON object",
            "give the file that torch.profiler exported",
        )


def _names(keys: dict[str, Any]) -> str:
    shown = [printable(key, 30) for key in list(keys)[:8]]
    return ", ".join(shown) + (" ..." if len(keys) > len(shown) else "")


def _one_key(text: Text, document: Document, reader: Arrays, notes: Notes) -> bool:
    """Read a key, its value and what separates it from the next; False where the text is damaged or ends."""
    match = STRING.match(text, document.pos)
    if match is None:
        return False
    colon = skip_blank(text, match.end())
    if at(text, colon) != b":":
        return False
    start = skip_blank(text, colon + 1)
    key = bytes(match[0])[1:-1].decode("utf-8", "replace")
    if key == "traceEvents":
        _events(text, start, document, reader, notes)
        if document.done:
            return True
    else:
        if document.arrays == 0:
            refuse_keys({**document.keys, key: ""}, only_early=True)
        end = value_end(text, start)
        if end is None:
            return False
        document.keys[key] = _value(bytes(text[start:end]), start, key, notes)
        document.pos = end
    document.pos = skip_blank(text, document.pos)
    separator = at(text, document.pos)
    if separator == b",":
        document.pos = skip_blank(text, document.pos + 1)
        if at(text, document.pos) == b"}":
            notes.say(
                "extra-comma", f"a superfluous comma before byte {document.pos:,} was ignored", lossy=True
            )
    elif separator == b'"':
        notes.say("missing-comma", f"a comma is missing before byte {document.pos:,}", lossy=True)
    return separator in (b",", b"}", b'"')


def _events(text: Text, start: int, document: Document, reader: Arrays, notes: Notes) -> None:
    if at(text, start) != b"[" and document.arrays:
        notes.say(
            "duplicate-events", f"a second traceEvents, at byte {start:,}, is no list: ignored", lossy=True
        )
        document.pos = value_end(text, start) or len(text)
        return
    if start >= len(text):
        raise _no_events_yet(text, start)
    if at(text, start) != b"[":
        value = bytes(text[start : start + 20]).decode("utf-8", "replace")
        raise ReadError(
            "not a trace: traceEvents is no list",
            f"at byte {start:,} stands {printable(value, 20)}",
            "give the file that torch.profiler exported",
        )
    if document.arrays == 1:
        notes.say(
            "duplicate-events",
            f"traceEvents occurs twice (the second at byte {start:,}; files merged by hand?): both were read",
            lossy=True,
        )
    document.arrays += 1
    document.pos, ending = reader.array(start + 1)
    _refuse_nothing(text, start, ending, reader, notes)
    _say_how_it_ended(text, document.pos, ending, reader, notes)
    document.done = ending is not Ending.CLOSED


def _refuse_nothing(text: Text, start: int, ending: Ending, reader: Arrays, notes: Notes) -> None:
    """Raise where not one event could be read though something stands there."""
    if reader.n_entries:
        return
    if ending in (Ending.END_OF_TEXT, Ending.HALF_EVENT):
        raise ReadError(
            f"truncated: the text ends (byte {len(text):,}) before the first event (byte {start:,}) is whole",
            _KILLED,
            _DO_AGAIN,
        )
    if notes.number(Trouble.DROPPED) or ending is Ending.OTHER_TEXT:
        raise ReadError(f"damaged: no event can be read from byte {start:,} on", "", _DO_AGAIN)


def _say_how_it_ended(text: Text, pos: int, ending: Ending, reader: Arrays, notes: Notes) -> None:
    kept = f"the {count_of(reader.n_events, 'whole event')} before it are used"
    if ending in (Ending.END_OF_TEXT, Ending.HALF_EVENT):
        where = "inside an event" if ending is Ending.HALF_EVENT else "before traceEvents is closed"
        notes.say(
            "truncated",
            f"the text is truncated: it ends {where} (byte {pos:,} of {len(text):,}; {_KILLED}?); {kept}",
            lossy=True,
        )
    elif ending is Ending.OTHER_TEXT:
        notes.say(
            "interleaved",
            f"at byte {pos:,} one text runs into another (two processes wrote the same file?); {kept}, "
            f"{count_of(len(text) - pos, 'byte')} after it left out",
            lossy=True,
        )


def _behind_comma(text: Text, pos: int) -> int:
    pos = skip_blank(text, pos)
    return skip_blank(text, pos + 1) if at(text, pos) == b"," else pos


def _value(raw: bytes, start: int, key: str, notes: Notes) -> Any:
    if is_sound(raw):
        return decode(raw)
    fixed = repair(raw)
    if fixed is None:
        notes.say(
            "damaged-header",
            f"the value of {printable(key, 40)} at byte {start:,} cannot be read",
            lossy=True,
        )
        return None
    why = ", ".join(WORDS[trouble] for trouble in fixed[1])
    notes.say(
        "damaged-header",
        f"the value of {printable(key, 40)} at byte {start:,} was repaired ({why})",
        lossy=True,
    )
    return decode(fixed[0])


def _resume(text: Text, document: Document, reader: Arrays, notes: Notes) -> None:
    """Go on at the events, if they come later, where the top level is damaged or the text ends."""
    pos = document.pos
    later = EVENTS.search(text, pos)
    if later is not None:
        notes.say(
            "damaged-header", f"the top level is damaged at byte {pos:,}: keys there are lost", lossy=True
        )
        document.pos = later.start()
    elif document.arrays and EVENT_START.match(text, pos):
        notes.say(
            "extra-bracket",
            f"a stray closing bracket among the events, before byte {pos:,}, was ignored",
            lossy=True,
        )
        document.pos, ending = reader.array(pos)
        _say_how_it_ended(text, document.pos, ending, reader, notes)
        document.done = ending is not Ending.CLOSED
        document.pos = _behind_comma(text, document.pos)
    elif document.arrays:
        is_whole = bytes(text[-64:]).rstrip(b"\0 \r\n\t").endswith(b"}")
        what = "damaged-footer" if is_whole else "truncated"
        why = "the top level is damaged" if is_whole else "the text is truncated"
        notes.say(what, f"{why} behind the events, at byte {pos:,}: keys there are lost", lossy=True)
        document.done = True
    else:
        refuse_keys(document.keys)
        raise _no_events_yet(text, pos)


def _no_events_yet(text: Text, pos: int) -> ReadError:
    if at(text, pos) == b"'":
        return ReadError(
            f"not JSON: single quotes at byte {pos:,}",
            "this is Python's repr of a dict, not JSON",
            "write it with json.dump, or export the trace again",
        )
    if pos >= len(text) or STRING.match(text, pos) is not None or at(text, pos) == b'"':
        return ReadError(
            f"truncated: the text ends in its header (byte {pos:,} of {len(text):,}), before traceEvents",
            _KILLED,
            _DO_AGAIN,
        )
    found = printable(bytes(text[pos : pos + 20]).decode("utf-8", "replace"), 20)
    return ReadError(f"not valid JSON at byte {pos:,}", f"unexpected {found} before traceEvents", _DO_AGAIN)


def _say_what_follows(text: Text, pos: int, notes: Notes) -> None:
    rest = skip_blank(text, pos)
    if rest < len(text):
        what = "a second document" if at(text, rest) in (b"{", b"[") else "something else"
        notes.say(
            "trailing-content",
            f"{what} follows the trace at byte {rest:,} (two files appended?): "
            f"{count_of(len(text) - rest, 'byte')} from there on not read",
            lossy=True,
        )
