"""Findings in order of time at stake, none of it counted twice, and no more than there is."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tracehunch.checks._budget import budgets_us
from tracehunch.checks._idle import Idle, idle_of
from tracehunch.facts.model import Facts
from tracehunch.trace.model import GPU_CATS, UNKNOWN_NS, Int64
from tracehunch.tree.keys import distinct
from tracehunch.units import time_us
from tracehunch.verdict import SEVERITIES, Finding, Severity

_NOBODY: Final = -1
_CUT: Final = (
    "It is cut to what is left of the time of a median call: together the findings of a scope put no more "
    "than that at stake."
)
_SPECIFIC, _WHOLE_ATTENTION, _WHOLE_PROGRAM = range(3)
_GENERAL: Final = {
    "unfused-attention": _WHOLE_ATTENTION,
    "overhead-bound": _WHOLE_PROGRAM,
    "gpu-gap": _WHOLE_PROGRAM,
}
"""What is said of a whole yields to what names a part of it that can be mended alone (a copy in attention by
hand, a wait in a program that waits for launches)."""
_NEARLY_ALL: Final = 0.9
"""Part of what is said of a whole program that others say better: the rest is no second warning."""


def ranked(findings: Iterable[Finding], facts: Facts) -> tuple[Finding, ...]:
    """Order findings by time at stake.

    What rests on GPU activities or pieces of idle time that a larger finding claims yields to it, and those
    of one scope together claim no more than its time.
    """
    order = sorted(findings, key=lambda finding: (_GENERAL.get(finding.id, _SPECIFIC), _rank(finding)))
    claims = _Claims(facts)
    settled = [claims.settle(finding) for finding in order]
    rounded = (replace(finding, time_at_stake_us=round(finding.time_at_stake_us, 3)) for finding in settled)
    return tuple(sorted(_within_budget(sorted(rounded, key=_rank), facts), key=_rank))


def _rank(finding: Finding) -> tuple[float, int, str, str]:
    return (-finding.time_at_stake_us, -SEVERITIES.index(finding.severity), finding.id, finding.scope)


@dataclass(frozen=True, slots=True)
class _Holdings:
    """What a finding's saving rests on: rows of the trace and pieces of idle time, lengths in nanoseconds."""

    rows: Int64
    pieces: Int64
    lengths: NDArray[np.float64]  # of the rows, then of the pieces


class _Claims:
    """Who has claimed which row, and which piece of idle time."""

    def __init__(self, facts: Facts) -> None:
        self._trace = facts.tree.trace
        self._idle: Idle = idle_of(facts)
        self._row_owner = np.full(len(self._trace), _NOBODY, dtype=np.int64)
        self._piece_owner = np.full(len(self._idle), _NOBODY, dtype=np.int64)
        self._holders: list[Finding] = []
        self._by_event = np.argsort(self._trace.event, kind="stable")

    def settle(self, finding: Finding) -> Finding:
        """Reduce a finding's saving by what others have claimed, and claim the rest for it."""
        if finding.time_at_stake_us <= 0:
            return finding
        held = self._holdings(finding)
        owner = np.r_[self._row_owner[held.rows], self._piece_owner[held.pieces]]
        free = owner == _NOBODY
        self._row_owner[held.rows[free[: held.rows.size]]] = len(self._holders)
        self._piece_owner[held.pieces[free[held.rows.size :]]] = len(self._holders)
        self._holders.append(finding)
        return finding if free.all() else self._reduced(finding, held, owner)

    def _reduced(self, finding: Finding, held: _Holdings, owner: Int64) -> Finding:
        taken = owner != _NOBODY
        whole = float(held.lengths.sum())
        part = 1.0 if taken.all() or not whole else float(held.lengths[taken].sum()) / whole
        left = finding.time_at_stake_us * (1 - part)
        others = [self._holders[number] for number in dict.fromkeys(owner[taken].tolist())]
        holders = ", ".join(dict.fromkeys(other.id for other in others))
        gone = time_us(finding.time_at_stake_us - left)
        said = f"Of its time at stake {gone} is counted under {holders}, whose fix removes it too."
        told = part >= _NEARLY_ALL and any(other.severity != "note" for other in others)
        as_note = told and _GENERAL.get(finding.id) == _WHOLE_PROGRAM
        severity: Severity = "note" if as_note else finding.severity
        return replace(finding, time_at_stake_us=left, severity=severity, cause=f"{finding.cause} {said}")

    def _holdings(self, finding: Finding) -> _Holdings:
        """GPU activities among a finding's evidence, and its idle time; all evidence if it has neither."""
        trace, idle = self._trace, self._idle
        events = np.asarray(finding.evidence, dtype=np.int64)
        rows = distinct(self._by_event[np.searchsorted(trace.event, events, sorter=self._by_event)])
        pieces = np.asarray(finding.idle, dtype=np.int64)
        on_gpu = rows[np.isin(trace.cat[rows], GPU_CATS)]
        rows = on_gpu if on_gpu.size or pieces.size else rows
        lengths = trace.dur_ns[rows]
        of_rows = np.where(lengths == UNKNOWN_NS, 0, lengths)
        return _Holdings(
            rows, pieces, np.r_[of_rows, idle.end_ns[pieces] - idle.start_ns[pieces]].astype(np.float64)
        )


def _within_budget(findings: Iterable[Finding], facts: Facts) -> Iterable[Finding]:
    """Cut savings, the smallest first, where those of a scope sum to more than its time."""
    left = budgets_us(facts)
    for finding in findings:
        room = max(left.get(finding.scope, finding.time_at_stake_us), 0.0)
        left[finding.scope] = room - finding.time_at_stake_us
        if finding.time_at_stake_us <= room:
            yield finding
            continue
        said = _CUT
        yield replace(finding, time_at_stake_us=round(room, 3), cause=f"{finding.cause} {said}")
