"""The evidence of findings and surprises, as far as it is shown, and where a first look at it goes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracehunch.trace.model import GPU_CATS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.report.html.timeline.window import Window
    from tracehunch.trace.model import Int64
    from tracehunch.verdict import Look


def evidence_of(look: Look, rows: Int64, window: Window, unit: int) -> dict[str, Any]:
    """Return it by key: "f0" for the first of a look's findings, "s0" for the first of its surprises.

    `events` are places among the shown rows, `all` counts the evidence with what is not shown. `first` and
    `last` span the shown evidence of one call, in units from the window's start: over many calls, the whole
    would show nothing.
    """
    found = [(f"f{at}", one.scope, one.evidence) for at, one in enumerate(look.checked.findings)]
    found += [(f"s{at}", one.claim.scope, one.evidence) for at, one in enumerate(look.verdict.surprises)]
    shown = look.facts.tree.trace.event[rows].astype(np.int64)
    return {
        key: {"all": len(events), **_told(look, scope, rows, _there(shown, events), window.start_ns, unit)}
        for key, scope, events in found
        if events
    }


def positions(rows: Int64, wanted: Int64) -> Int64:
    """Return where wanted rows stand among the shown ones; -1 for those that are not shown, or none."""
    if not rows.size:
        return wanted
    order = np.argsort(rows, kind="stable")
    at = np.minimum(np.searchsorted(rows[order], wanted), rows.size - 1)
    there = (wanted >= 0) & (rows[order][at] == wanted)
    return np.where(there, order[at], -1)


def _there(shown: Int64, events: Sequence[int]) -> Int64:
    at = positions(shown, np.asarray(events, dtype=np.int64))
    return np.sort(at[at >= 0])


def _told(  # noqa: PLR0917  # all from one place
    look: Look, scope: str, rows: Int64, there: Int64, start_ns: int, unit: int
) -> dict[str, Any]:
    if not there.size:
        return {"events": []}
    trace = look.facts.tree.trace
    here = _of_one_call(look, scope, rows[there])
    on_gpu = here[np.isin(trace.cat[here], GPU_CATS)]
    here = on_gpu if on_gpu.size else here
    first, last = int(trace.start_ns[here].min()), int(trace.end_ns()[here].max())
    return {
        "events": there.tolist(),
        "first": (first - start_ns) // unit,
        "last": (last - start_ns) // unit,
    }


def _of_one_call(look: Look, scope: str, evidence: Int64) -> Int64:
    """Keep what the first call of the scope owns that owns any; all where none does."""
    facts = look.facts.scope(scope)
    for call in () if facts is None else facts.scope.calls:
        owned = np.concatenate([call.gpu, call.launches, call.ops])
        mine = evidence[np.isin(evidence, owned)]
        if mine.size:
            return mine
    return evidence
