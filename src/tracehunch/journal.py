"""The journal of guesses: one JSON object a line, so that a person sees their guesses get better.

The file is only ever appended to, one whole line in one write, so that a crash or a second program at work
costs no more than the line being written. A line that cannot be read is skipped, never repaired.
"""

import errno
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import msgspec

from tracehunch.errors import TracehunchError
from tracehunch.facts.model import Value
from tracehunch.guess.model import Guess
from tracehunch.verdict import Verdict

ENVIRONMENT: Final = "TRACEHUNCH_JOURNAL"
"""Names the journal file in place of the default."""

RECENT: Final = 20
"""How many of the latest told claims ``Standing.recent`` is about."""


@dataclass(frozen=True, slots=True)
class Score:
    """How many claims held, how many were surprises, how many could not be told."""

    held: int = 0
    surprises: int = 0
    cannot_tell: int = 0

    @property
    def told(self) -> int:
        """Claims that were decided; the others count neither way."""
        return self.held + self.surprises


@dataclass(frozen=True, slots=True)
class Entry:
    """One guess and what became of it. ``claims`` are key -> as written, ``seen`` key -> value."""

    time: str  # UTC, ISO 8601
    scope: str
    claims: Mapping[str, str]
    seen: Mapping[str, Value]
    score: Score
    seal: str
    variant: str = ""
    held: tuple[str, ...] = ()  # keys of the claims that held


@dataclass(frozen=True, slots=True)
class Standing:
    """How good the guesses are: over all entries, lately, and key by key as (held, told)."""

    guesses: int = 0
    held: int = 0
    told: int = 0
    recent_held: int = 0
    recent_told: int = 0
    by_key: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def accuracy(self) -> float | None:
        """Held of told, 0 to 1; None before anything was told."""
        return self.held / self.told if self.told else None

    @property
    def recent(self) -> float | None:
        """The same over the latest claims."""
        return self.recent_held / self.recent_told if self.recent_told else None


def journal_path(environment: Mapping[str, str] | None = None) -> Path:
    """Find the journal: ``TRACEHUNCH_JOURNAL``, else in ``XDG_STATE_HOME``, else in ``~/.local/state``."""
    environment = os.environ if environment is None else environment
    if named := environment.get(ENVIRONMENT):
        return Path(named).expanduser()
    state = Path(environment.get("XDG_STATE_HOME", ""))
    # the XDG rules: a relative path there is to be ignored
    base = state if state.is_absolute() else Path("~/.local/state").expanduser()
    return base / "tracehunch" / "journal.jsonl"


def entry_of(guess: Guess, verdict: Verdict, variant: str = "", at: datetime | None = None) -> Entry:
    """Return the entry for a guess and the verdict on it (on this guess alone)."""
    told = [(held.claim, held.seen) for held in verdict.held]
    told += [(surprise.claim, surprise.seen) for surprise in verdict.surprises]
    return Entry(
        time=(at or datetime.now(UTC)).astimezone(UTC).isoformat(timespec="seconds"),
        scope=guess.claims[0].scope if guess.claims else "",
        claims={claim.key: f"{claim.relation} {_plain(claim.expected)}" for claim in guess.claims},
        seen={claim.key: seen for claim, seen in told},
        score=Score(len(verdict.held), len(verdict.surprises), len(verdict.cannot_tell)),
        seal=guess.seal,
        variant=variant,
        held=tuple(held.claim.key for held in verdict.held),
    )


def append(entry: Entry, path: Path | None = None) -> Path:
    """Add one line to the journal, making its folder where needed; the path it was written to.

    Raises:
        TracehunchError: the file cannot be written.

    """
    path = journal_path() if path is None else path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _append_line(path, msgspec.json.encode(entry))
    except OSError as error:
        reason = error.strerror or str(error)
        raise TracehunchError(
            f"cannot write the journal {path}", reason, f"set {ENVIRONMENT} to another file"
        ) from None
    return path


def history(path: Path | None = None) -> list[Entry]:
    """Return the entries in order, without lines that are broken or not ours. No file is an empty history.

    Raises:
        TracehunchError: the file is there and cannot be read.

    """
    path = journal_path() if path is None else path
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        reason = error.strerror or str(error)
        raise TracehunchError(
            f"cannot read the journal {path}", reason, f"set {ENVIRONMENT} to another file"
        ) from None
    decoder = msgspec.json.Decoder(Entry)
    return [entry for line in data.splitlines() if (entry := _decoded(line, decoder)) is not None]


def standing(entries: Iterable[Entry]) -> Standing:
    """Return the running score of all entries, latest last."""
    everything = list(entries)
    outcomes = [(key, key in entry.held) for entry in everything for key in entry.seen]
    by_key: dict[str, tuple[int, int]] = {}
    for key, held in outcomes:
        before = by_key.get(key, (0, 0))
        by_key[key] = (before[0] + held, before[1] + 1)
    latest = outcomes[-RECENT:]
    return Standing(
        guesses=len(everything),
        held=sum(held for _, held in outcomes),
        told=len(outcomes),
        recent_held=sum(held for _, held in latest),
        recent_told=len(latest),
        by_key=by_key,
    )


def _append_line(path: Path, line: bytes) -> None:
    with path.open("ab", buffering=0) as file:
        # after a write that was cut short the new entry still begins on a line of its own
        start = b"" if _ends_whole(path) else b"\n"
        whole = start + line + b"\n"
        if file.write(whole) != len(whole):
            raise OSError(errno.ENOSPC, "the line was cut short")


def _ends_whole(path: Path) -> bool:
    with path.open("rb") as file:
        if file.seek(0, os.SEEK_END) == 0:
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


def _decoded(line: bytes, decoder: msgspec.json.Decoder[Entry]) -> Entry | None:
    try:
        return decoder.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def _plain(expected: object) -> str:
    parts: Sequence[object] = expected if isinstance(expected, tuple) else (expected,)
    return ", ".join(str(part) for part in parts)
