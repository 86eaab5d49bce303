"""Findings in order of time at stake, none of it counted twice."""

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from tracehunch.checks._scopes import durations_us
from tracehunch.trace.model import GPU_CATS, Int64, Trace
from tracehunch.units import time_us
from tracehunch.verdict import SEVERITIES, Finding


def ranked(findings: Iterable[Finding], trace: Trace) -> tuple[Finding, ...]:
    """Order findings by time at stake; what rests on activities that a larger finding claims yields to it."""
    order = sorted(findings, key=_rank)
    owner: dict[int, Finding] = {}
    settled = []
    for finding in order:
        rows = _claimed_rows(finding, trace).tolist()
        settled.append(_less_what_is_taken(finding, rows, owner, trace))
        if finding.time_at_stake_us > 0:
            for row in rows:
                owner.setdefault(row, finding)
    rounded = (replace(finding, time_at_stake_us=round(finding.time_at_stake_us, 3)) for finding in settled)
    return tuple(sorted(rounded, key=_rank))


def _rank(finding: Finding) -> tuple[float, int, str, str]:
    return (-finding.time_at_stake_us, -SEVERITIES.index(finding.severity), finding.id, finding.scope)


def _less_what_is_taken(
    finding: Finding, rows: list[int], owner: dict[int, Finding], trace: Trace
) -> Finding:
    """Reduce the finding's saving by the share of its activities that others have claimed."""
    taken = [row for row in rows if row in owner]
    if not taken or finding.time_at_stake_us <= 0:
        return finding
    whole = float(durations_us(trace, rows).sum())
    part = float(durations_us(trace, taken).sum()) / whole if whole else 1.0
    left = 0.0 if len(taken) == len(rows) else finding.time_at_stake_us * (1 - part)
    holders = ", ".join(dict.fromkeys(owner[row].id for row in taken))
    gone = time_us(finding.time_at_stake_us - left)
    cause = (
        f"{finding.cause} Of its time at stake {gone} is counted under {holders}, whose fix removes it too."
    )
    return replace(finding, time_at_stake_us=left, cause=cause)


def _claimed_rows(finding: Finding, trace: Trace) -> Int64:
    """Pick the GPU activities among a finding's evidence; all of its evidence where it rests on none."""
    order = np.argsort(trace.event, kind="stable")
    events = np.asarray(finding.evidence, dtype=np.int64)
    rows = order[np.searchsorted(trace.event, events, sorter=order)]
    on_gpu = rows[np.isin(trace.cat[rows], GPU_CATS)]
    return on_gpu if on_gpu.size else rows
