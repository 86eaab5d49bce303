"""A stretch of ``traceEvents`` that does not decode in one call -> its entries, one by one.

What is damaged is repaired where that is certain, else dropped up to where the next event plausibly begins.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import TYPE_CHECKING

from tracehunch.trace.notes import Notes, Trouble
from tracehunch.trace.repair import is_sound, repair
from tracehunch.trace.scan import ARRAY_END, STRING, Text, at, value_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_KEY = rb'"(?:ph|name|cat|args|id|pid|tid|ts|dur|s|bp|tts|tdur|cname|sf)"\s*+:'  # of an event
_BEGIN = rb"\{\s*+" + _KEY
_BEHIND = re.compile(rb"\}\s*+,?\s*+(?=" + _BEGIN + rb")")
"""Between two events, plausibly."""
EVENT_START = re.compile(_BEGIN)
"""Where an event plausibly begins, whatever stands before it."""

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_LEAF = rb'\{(?:[^"{}]++|' + _STRING + rb")*+\}"
_INNER = rb'\{(?:[^"{}]++|' + _STRING + rb"|" + _LEAF + rb")*+\}"
_NESTED = re.compile(rb'\{(?:[^"{}]++|' + _STRING + rb"|" + _INNER + rb")*+\}", re.DOTALL)
"""An object with objects in its objects, string-aware; square brackets need no counting."""

_BEHIND_ARRAY = re.compile(rb"(?!" + _KEY + rb')"[^"\\]*+"\s*+:|\}\s*+\Z')
"""What follows an array that lacks its closing bracket: the next key, or the end of the object."""

CLOSED = re.compile(rb"\](?!\s*+" + _KEY + rb")")
"""The array's end, and no bracket in place of an event's brace."""

_GAP = re.compile(rb"[\s\0,]*+")
_OTHER_EVENTS = re.compile(rb'"traceEvents"')
_PHASE = re.compile(rb'"ph"\s*+:')
_ENDS_TRIED = 16
_NESTED_BYTES = 1 << 22
_TRIED_AHEAD = 1 << 21
_TRIED_PER_BYTE = 16
_COUNTED, _CHECKED, _REPAIRED = 4, 16, 1
"""So many bytes of counting braces, of checking, and of repair take as long as one of repair."""


class Ending(Enum):
    """Why the splitter stopped."""

    GOAL = "the stretch asked for is done"
    CLOSED = "the array's closing bracket"
    END_OF_TEXT = "the text ends between two events"
    HALF_EVENT = "the text ends inside an event"
    OTHER_TEXT = "another file's text begins"


@dataclass(frozen=True, slots=True)
class Element:
    """One entry as sound JSON, where it stands, and how it was repaired."""

    offset: int
    text: bytes
    troubles: Counter[Trouble] = field(default_factory=Counter)


class _Next:
    """The next match of a pattern at or behind a place that only ever moves on; each is searched for once."""

    def __init__(self, text: Text, pattern: re.Pattern[bytes]) -> None:
        self._text, self._pattern = text, pattern
        self._match: re.Match[bytes] | None = None
        self.is_over = False  # there are no more

    def behind(self, pos: int) -> re.Match[bytes] | None:
        if not self.is_over and (self._match is None or self._match.start() < pos):
            self._match = self._pattern.search(self._text, pos)
            self.is_over = self._match is None
        return self._match


class Splitter:
    """Iterates over the entries from ``start``, where one begins, until the next begins at ``goal`` or later.

    Afterwards ``pos`` is where reading goes on (behind the bracket when CLOSED), or where the half event or
    the other text begins. ``is_other`` tells whether the text before one place and behind another
    comes from two files.
    """

    def __init__(
        self, text: Text, start: int, goal: int, notes: Notes, is_other: Callable[[int, int], bool]
    ) -> None:
        self.text = text
        self.pos = start
        self.ending: Ending | None = None
        self.notes = notes
        self._start = start
        self._goal = goal
        self._is_other = is_other
        self._commas = 0  # how many stand before the next entry when all is well
        self._lost = False  # the text just before was dropped
        self._tried = 0
        self._boundary = _Next(text, _BEHIND)
        self._array_end = _Next(text, ARRAY_END)
        self._other_events = _Next(text, _OTHER_EVENTS)

    def __iter__(self) -> Iterator[Element]:
        while self.ending is None:
            behind = self.pos
            self._skip_gap()
            if self.pos >= len(self.text):
                self.ending = Ending.END_OF_TEXT
            elif CLOSED.match(self.text, self.pos) and not self._is_inside_lost():
                self.ending = Ending.CLOSED
                self.pos += 1
            elif not self._lost and _BEHIND_ARRAY.match(self.text, self.pos) and not self._has_more(self.pos):
                self.notes.count(Trouble.MISSING_BRACKET, 1, self.pos)
                self.ending = Ending.CLOSED
                self.pos = behind
            elif self.pos >= self._goal:
                self.ending = Ending.GOAL
            elif (element := self._element(self.pos)) is not None:
                yield element

    def _skip_gap(self) -> None:
        match = _GAP.match(self.text, self.pos)
        gap = match[0] if match else b""
        behind = self.pos + len(gap)
        if not self._lost and behind < len(self.text):
            wanted = 0 if at(self.text, behind) == b"]" else self._commas
            self.notes.count(Trouble.EXTRA_COMMA, gap.count(b",") - wanted, self.pos)
            self.notes.count(Trouble.MISSING_COMMA, wanted - gap.count(b","), self.pos)
        self.pos = behind

    def _is_inside_lost(self) -> bool:
        """Whether a closing bracket belongs to a list inside the event just dropped; if so, skip it."""
        if not self._lost or not self._has_more(self.pos):
            return False
        start = EVENT_START.search(self.text, self.pos)
        self.pos = start.start() if start else self.pos + 1
        return True

    def _has_more(self, pos: int) -> bool:
        """Whether more events of this array follow."""
        start = EVENT_START.search(self.text, pos)
        return start is not None and b'"traceEvents"' not in bytes(self.text[pos : start.start()])

    def _may_try(self, size: int, share: int) -> bool:
        """Whether work on ``size`` more bytes stays in proportion to the text, and not to its square."""
        if self._tried > _TRIED_AHEAD + _TRIED_PER_BYTE * (self.pos - self._start):
            return False
        self._tried += size // share
        return True

    def _element(self, start: int) -> Element | None:
        following = self._boundary.behind(start)
        stop = following.start() + 1 if following else None
        ends = []
        for end in self._ends(start, stop):
            if not self._may_try(end - start, _CHECKED):
                break
            ends.append(end)
            text = bytes(self.text[start:end])
            if is_sound(text):
                return self._found(end, Element(start, text))
        for end in ends:
            if not self._may_try(end - start, _REPAIRED):
                break
            fixed = repair(bytes(self.text[start:end]))
            if fixed is not None:
                return self._found(end, Element(start, *fixed))
        self._drop(start, stop)
        return None

    def _ends(self, start: int, stop: int | None) -> Iterator[int]:
        """Where the entry at ``start`` may end, most likely first."""
        if at(self.text, start) != b"{":
            yield from self._other_ends(start)
            return
        limit, farthest = len(self.text), start + _NESTED_BYTES
        if stop is not None:
            yield stop
            if not self._may_try(stop - start, _COUNTED):
                return
            braces = STRING.sub(b"", bytes(self.text[start:stop]))
            is_inside = braces.count(b"{") > braces.count(b"}")  # of a list of objects
            limit, farthest = stop, farthest if is_inside else stop
        nested = _NESTED.match(self.text, start, farthest)
        if nested and self._is_between(nested.end()):
            yield nested.end()
        first = self._array_end.behind(start)
        if first and first.end() <= limit:
            for match in islice(ARRAY_END.finditer(self.text, first.start(), limit), _ENDS_TRIED):
                yield match.start() + 1

    def _other_ends(self, start: int) -> Iterator[int]:
        """Where an entry that is no object ends, if it stands between commas and swallows no event."""
        if not self._may_try(0, _COUNTED):
            return
        end = value_end(self.text, start)
        self._tried += ((len(self.text) if end is None else end) - start) // _COUNTED
        gap = None if end is None else _GAP.match(self.text, end)
        between = gap and (b"," in gap[0] or at(self.text, gap.end()) in (b"]", b""))
        if end and between and not EVENT_START.search(self.text, start, end):
            yield end

    def _is_between(self, pos: int) -> bool:
        """Whether another entry, or the end of the array, follows what ends at ``pos``."""
        gap = _GAP.match(self.text, pos)
        behind = gap.end() if gap else pos
        if at(self.text, behind) in (b"{", b"]", b""):
            return True
        if gap and b"," in gap[0] and any(True for _ in self._other_ends(behind)):
            return True
        return self._boundary.is_over and _BEHIND_ARRAY.match(self.text, behind) is not None

    def _found(self, end: int, element: Element) -> Element | None:
        self.pos = end
        if self._lost and not _PHASE.search(element.text):
            return None  # part of a list inside the dropped event
        self._lost = False
        self._commas = 1
        return element

    def _drop(self, start: int, stop: int | None) -> None:
        """Give up the text from ``start`` to the next event or the end of the array, or see that it ends."""
        if stop is not None:
            others = self._other_events.behind(start)
            if (others and others.end() <= stop) or self._is_other(start, stop):
                self.ending = Ending.OTHER_TEXT
                return
        again = EVENT_START.search(self.text, start + 1)
        end = again.start() if again else self._last_end(start)
        if end is None:
            self.ending = Ending.HALF_EVENT
            return
        self.notes.count(Trouble.DROPPED, 0 if self._lost else 1, start)
        self.pos = end
        self._lost = True

    def _last_end(self, start: int) -> int | None:
        """Where the array ends behind ``start``; None if the text does not end as a whole one does."""
        if bytes(self.text[-64:]).rstrip(b"\0 \r\n\t")[-1:] not in (b"}", b"]"):
            return None
        last = None
        for match in ARRAY_END.finditer(self.text, start):
            last = match.end()
        return last
