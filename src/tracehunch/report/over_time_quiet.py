"""What was read, and what did not change over time, in words; what to type next."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from tracehunch.compare.over_time.calls import ALONE, COLLECTIVE
from tracehunch.compare.over_time.model import COMPUTE
from tracehunch.report.over_time_facts import DERIVED, change_of, name_of, value_text
from tracehunch.report.over_time_words import SCOPE_WIDTH, since_text, worst_first
from tracehunch.units import elide, join, plural, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.over_time.model import Drift, Level, OverTime, Run, Shift

_NAMES: Final = 3


def header_lines(report: OverTime) -> list[tuple[str, str]]:
    """Return what was read: label and text."""
    lines = [(run.label or "read", _run_text(run)) for run in report.runs]
    if report.runs:
        lines.append(("recorded", _recorded(report.runs[0])))
    tried = sum(run.tried for run in report.runs)
    if tried:
        one_in = round(1 / report.false_alarms)
        series = plural(tried, "series", "series")
        told = f"{series} of times; by noise alone, 1 report in {one_in} shows a change"
        lines.append(("tested", told))
    return lines


def _run_text(run: Run) -> str:
    cycles = run.cycles
    recorded_ns = sum(cycle.end_ns - cycle.start_ns for cycle in cycles)
    steps = [int(one) for c in cycles for s in c.scopes.values() if s.kind == "step" for one in s.step]
    files = plural(len(cycles), "cycle") if len(cycles) > 1 else "1 file"
    told = f", {plural(len(steps), 'step')} ({min(steps)} to {max(steps)})" if steps else ""
    lasted = max(cycle.end_ns for cycle in cycles) - min(cycle.start_ns for cycle in cycles)
    span = f" over {time_us(lasted / 1e3)}, {time_us(recorded_ns / 1e3)} of it recorded"
    if not all(cycle.is_absolute for cycle in cycles) or len(cycles) == 1:
        span = f", {time_us(recorded_ns / 1e3)}"
    return f"{files}{told}{span}"


def _recorded(run: Run) -> str:
    torch = list(dict.fromkeys(one.torch for one in run.cycles if one.torch))
    devices = list(dict.fromkeys(name for one in run.cycles for name in one.devices))
    where = join([printable(one, 60) for one in devices]) or ("a GPU" if run.cycles[0].on_gpu else "no GPU")
    return f"{where}, PyTorch {join([printable(one, 40) for one in torch])}" if torch else where


def quiet_lines(report: OverTime) -> list[tuple[str, str]]:
    """Return what did not change, a line each: constant facts, warm-up, one-offs, what varies."""
    drifts = [drift for run in report.runs for drift in run.drifts]
    lines = [("constant", _constant(drifts))]
    warm = _some(drifts, "warm-up")
    if warm:
        lines.append(("warm-up", f"higher in the first cycle only: {warm}"))
    odd = [one for one in drifts if one.kind == "one-off" and one.unit == "us" and one.key == "wall_time"]
    if odd:
        lines.append(("one-offs", "; ".join(_one_off(one) for one in _innermost(odd)[:_NAMES])))
    varies = _some([one for one in drifts if one.key not in DERIVED], "varies")
    if varies:
        lines.append(("varies", f"from call to call, in no order: {varies}"))
    ahead = [text for run in report.runs for text in _beside_collectives(run)]
    lines.append(("ranks", "; ".join(ahead[:_NAMES]) + (" ..." if len(ahead) > _NAMES else "")))
    few = {one.scope for one in drifts if one.kind == "too-few" and one.unit == "us"}
    if few:
        told = join([elide(printable(one), SCOPE_WIDTH) for one in sorted(few)[:_NAMES]], "and")
        more = f" and {len(few) - _NAMES} more" if len(few) > _NAMES else ""
        lines.append(("too few", f"calls to test the times of {told}{more}: 8 are needed beside the warm-up"))
    return [(label, text) for label, text in lines if text]


def verdict(report: OverTime) -> str:
    """Return in a sentence that nothing changed, as far as that can be told; "" where something did."""
    if any(run.shifts for run in report.runs):
        return ""
    most = max((calls for run in report.runs for calls in run.calls.values()), default=0)
    if most < 2:
        return "Nothing can be compared: no scope has two calls."
    if not any(run.tried for run in report.runs):
        few = "there are too few calls to tell whether times"
        if any(one.kind == "varies" for run in report.runs for one in run.drifts):
            return f"Some counts vary, in no order that can be told; {few} changed."
        return f"Counts did not change over time; {few} did."
    return "Nothing changed over time."


def _constant(drifts: Sequence[Drift]) -> str:
    same = [one for one in drifts if one.kind in ("constant", "one-off")]
    if not same:
        return ""
    scopes = list(dict.fromkeys(one.scope for one in same))
    return f"{plural(len(same), 'fact')} of {plural(len(scopes), 'scope')}"


def _some(drifts: Sequence[Drift], kind: str) -> str:
    by_scope: dict[str, list[str]] = {}
    for one in drifts:
        if one.kind == kind:
            by_scope.setdefault(one.scope, []).append(name_of(one))
    shown = []
    for scope, some in list(by_scope.items())[:_NAMES]:
        names = list(dict.fromkeys(some))  # ranks may say the same
        cut = " ..." if len(names) > _NAMES else ""
        shown.append(f"{', '.join(names[:_NAMES])}{cut} of {elide(printable(scope), SCOPE_WIDTH)}")
    more = f"; {len(by_scope) - _NAMES} more scopes" if len(by_scope) > _NAMES else ""
    return "; ".join(shown) + more


def _beside_collectives(run: Run) -> Iterator[str]:
    """Yield a sentence for each time at which only kernels beside collectives changed, of one scope."""
    moved = [one for one in run.drifts if one.kind == "beside-collectives" and len(one.levels) > 1]
    told: set[tuple[int | None, ...]] = set()
    for drift in sorted((one for one in moved if one.key == COMPUTE), key=_of_a_scope_first):
        where = tuple(place.step or place.call for place in drift.at)
        if where in told:
            continue
        told.add(where)
        waits = next(one for one in moved if (one.scope, one.key) == (drift.scope, COLLECTIVE))
        yield _who_runs_ahead(run, drift, waits)


def _of_a_scope_first(drift: Drift) -> tuple[bool, float]:
    return drift.scope == "ProfilerStep", _level(drift.levels[0])


def _who_runs_ahead(run: Run, drift: Drift, waits: Drift) -> str:
    kernels, collectives = (_level(one.levels[-1]) - _level(one.levels[0]) for one in (drift, waits))
    since = since_text(drift.at[0], run, drift.scope) if drift.at else "over time"
    subject = f"{run.label}, {since}" if run.label else since
    why = "who runs ahead changed: " if kernels * collectives > 0 else ""
    tested = any((one.scope, one.key) == (drift.scope, ALONE) for one in run.drifts)
    others = "the other kernels take the same" if tested else "too few other kernels are there to test"
    return (
        f"{subject}: {why}kernels of {elide(printable(drift.scope), SCOPE_WIDTH)} that share the GPU with "
        f"collectives are {'slower' if kernels > 0 else 'faster'} (all kernels {change_of(drift)}, "
        f"collectives {change_of(waits)}); {others}, and calls take no {'longer' if kernels > 0 else 'less'}"
    )


def _innermost(odd: Sequence[Drift]) -> list[Drift]:
    """Return one drift a place, of the shortest scope; the largest first."""
    by_place: dict[tuple[object, ...], Drift] = {}
    for one in odd:
        key = tuple((place.cycle, place.step, place.step or place.call) for place in one.at)
        kept = by_place.get(key)
        if kept is None or _level(one.levels[0]) < _level(kept.levels[0]):
            by_place[key] = one
    return sorted(by_place.values(), key=lambda one: _level(one.levels[0]) - _level(one.levels[-1]))


def _level(level: Level) -> float:
    return float(level.value) if isinstance(level.value, int | float) else 0.0


def _one_off(drift: Drift) -> str:
    usual, odd = drift.levels[0].value, drift.levels[-1].value
    places = [f"step {p.step}" if p.step is not None else f"call {p.call}" for p in drift.at[:_NAMES]]
    more = f" and {len(drift.at) - _NAMES} more" if len(drift.at) > _NAMES else ""
    took, else_ = (value_text(drift.unit, one) for one in (odd, usual))
    scope = elide(printable(drift.scope), SCOPE_WIDTH)
    return f"{scope} took {took} in {', '.join(places)}{more} (else {else_})"


def warnings(report: OverTime) -> list[str]:
    """Return all remarks on the files, a sentence each."""
    lines = [f"{one.code}: {one.message}" for one in report.notices]
    for run in report.runs:
        prefix = f"{run.label}: " if run.label else ""
        lines += [f"{prefix}{one.code}: {one.message}" for one in run.notices]
    lines += [f"left-out: {one}" for one in report.left_out]
    lines += [f"not read: {printable(one.label, 80)}: {one.why}" for one in report.unread]
    return lines


def next_command(report: OverTime) -> str:
    """Return the next command: a diff of the cycles before and after the worst change."""
    best = None
    for run in report.runs:
        for shift in run.shifts:
            if shift.kind in ("step", "trend") and (
                best is None or worst_first([shift]) < worst_first([best[1]])
            ):
                best = run, shift
    if best is None:
        source = report.runs[0].cycles[-1].source if report.runs else "TRACE"
        return f"tracehunch look {_quoted(source)}"
    run, shift = best
    before, after = _beside(run, shift)
    if before == after:
        scope = f" --scope {_quoted(shift.scope)}" if printable(shift.scope) == shift.scope else ""
        return f"tracehunch look {_quoted(run.cycles[before].source)}{scope}"
    return f"tracehunch diff {_quoted(run.cycles[before].source)} {_quoted(run.cycles[after].source)}"


def _beside(run: Run, shift: Shift) -> tuple[int, int]:
    """Return the last cycle wholly before a change, and the first wholly after it."""
    last = len(run.cycles) - 1
    if shift.place is None:
        return 0, last
    at = shift.place.cycle
    levels = shift.drifts[0].levels
    inside = levels[0].last.cycle == at  # calls of the same cycle lie before it
    return max(at - 1, 0), min(at + 1, last) if inside else at


def _quoted(text: str) -> str:
    return shlex.quote(printable(text))
