"""What went wrong while reading, counted by kind, and the notices that say so."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from tracehunch.trace.model import Notice
from tracehunch.trace.text import count_of, printable


@dataclass(frozen=True, slots=True)
class Wording:
    """How a kind of trouble is told: ``{n}`` is the counted noun, e.g. "2 events"."""

    code: str
    noun: str
    message: str
    lossy: bool = True


class Trouble(Enum):
    """Every kind of trouble that is counted an event at a time."""

    DROPPED = Wording(
        "damaged-event", "damaged stretch", "{n} dropped: no event could be read there", lossy=True
    )
    ESCAPE = Wording(
        "invalid-escape",
        "invalid escape",
        "{n} (a lone backslash in a string) repaired: read as the backslash itself",
    )
    EATEN_QUOTE = Wording("invalid-escape", "event", "{n} repaired: a backslash stood before a closing quote")
    CONTROL = Wording(
        "control-character", "raw control character", "{n} in strings (unescaped; JSON forbids them) repaired"
    )
    UTF8 = Wording(
        "invalid-utf8", "event", "{n} with bytes that are not UTF-8: decoded with a replacement character"
    )
    SURROGATE = Wording(
        "lone-surrogate",
        "event",
        "{n} with half a surrogate pair in a string: shown as a replacement character",
        lossy=False,
    )
    NON_FINITE = Wording(
        "non-finite", "value", "{n} written as a bare NaN or infinity (not finite): treated as unknown"
    )
    BARE_TOKEN = Wording(
        "bare-token",
        "value",
        "{n} that are no JSON (a bare token such as N/A, or nothing): treated as unknown",
    )
    MISSING_BRACKET = Wording(
        "missing-bracket",
        "closing bracket",
        "{n} of traceEvents missing: the events end where the next key begins",
    )
    INNER_COMMA = Wording("extra-comma", "superfluous comma", "{n} inside events ignored")
    EXTRA_COMMA = Wording("extra-comma", "superfluous comma", "{n} between events ignored")
    MISSING_COMMA = Wording("missing-comma", "missing comma", "{n} between events: repaired")
    NESTED = Wording(
        "deep-nesting",
        "event",
        "{n} with arguments nested too deep: what lies deeper than 200 levels was dropped",
    )
    NOT_EVENT = Wording(
        "not-events", "entry", "{n} of traceEvents ignored: no event (not an object, or without a phase)"
    )
    ODD_NAME = Wording("odd-names", "event", "{n} whose name is absent or no text: a stand-in is shown")
    ODD_ARGS = Wording(
        "odd-args",
        "event",
        "{n} whose args are not an object or hold ids that are no numbers: these arguments count as absent",
    )
    ODD_STAMP = Wording(
        "bad-timestamp", "event", "{n} without a usable timestamp (ts): kept, left out of the time span"
    )
    DUR_MISSING = Wording(
        "bad-duration", "event", "{n} without dur (missing): no usable duration, left out of all times"
    )
    DUR_NON_FINITE = Wording(
        "bad-duration",
        "event",
        "{n} whose dur is NaN or infinite (not finite): no usable duration, left out of all times",
    )
    DUR_NOT_NUMBER = Wording(
        "bad-duration", "event", "{n} whose dur is not a number: no usable duration, left out of all times"
    )
    DUR_NEGATIVE = Wording(
        "bad-duration",
        "event",
        "{n} with a negative dur (unfinished?): no usable duration, left out of all times",
    )
    DUR_HUGE = Wording(
        "bad-duration",
        "event",
        "{n} whose dur is implausible (runs past everything else in the file, or beyond several later "
        "activities on its stream): unusable, left out of all times",
    )
    LOST_STAMP = Wording(
        "lost-timestamp",
        "event",
        "{n} whose ts (0 or another) lies far outside the rest of the trace (lost timestamp): kept, left out "
        "of the time span",
    )
    UNMATCHED_BEGIN = Wording(
        "unmatched-begin", "begin event", "{n} (ph B) never end: unmatched, their duration is unknown"
    )
    UNMATCHED_END = Wording("unmatched-end", "end event", "{n} (ph E) without a begin: unmatched, ignored")


_PLURALS = {"damaged stretch": "damaged stretches", "entry": "entries"}


@dataclass(slots=True)
class _Tally:
    count: int = 0
    offset: int | None = None
    sample: str = ""


class Notes:
    """Collects trouble and single remarks, in the order in which they come up."""

    def __init__(self) -> None:
        self._tallies: dict[Trouble, _Tally] = {}
        self._said: list[Notice] = []

    def count(self, trouble: Trouble, n: int = 1, offset: int | None = None, sample: str = "") -> None:
        """Count ``n`` more of a kind; the first offset and sample are kept."""
        if n <= 0:
            return
        tally = self._tallies.setdefault(trouble, _Tally())
        tally.count += n
        if tally.offset is None:
            tally.offset = offset
        tally.sample = tally.sample or sample

    def say(self, code: str, message: str, *, lossy: bool) -> None:
        """Add a notice of its own."""
        notice = Notice(code, message, lossy)
        if notice not in self._said:
            self._said.append(notice)

    def add(self, others: Notes) -> None:
        """Add what others say, without what they only count."""
        for notice in others.notices():
            self.say(notice.code, notice.message, lossy=notice.lossy)

    def number(self, trouble: Trouble) -> int:
        """How many of a kind were counted."""
        tally = self._tallies.get(trouble)
        return tally.count if tally else 0

    def counted(self) -> dict[Trouble, int]:
        """How many of each kind, in the order in which they came up."""
        return {trouble: tally.count for trouble, tally in self._tallies.items()}

    def notices(self) -> tuple[Notice, ...]:
        """Everything as notices: remarks first, then counts."""
        return (*self._said, *(_notice(trouble.value, tally) for trouble, tally in self._tallies.items()))


def _notice(wording: Wording, tally: _Tally) -> Notice:
    counted = count_of(tally.count, wording.noun, _PLURALS.get(wording.noun, ""))
    message = wording.message.format(n=counted)
    where = [f"first at byte {tally.offset:,}"] if tally.offset is not None else []
    what = [f"such as {printable(tally.sample, 60)}"] if tally.sample else []
    if where or what:
        message += f" ({', '.join(where + what)})"
    return Notice(wording.code, message, wording.lossy)
