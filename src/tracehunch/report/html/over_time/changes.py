"""What changed, a card each: the costliest first, with its series, its evidence and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.html.escape import text
from tracehunch.report.html.over_time.evidence import evidence_table
from tracehunch.report.html.over_time.marks import marks
from tracehunch.report.html.over_time.series import LINES, Line, series_chart
from tracehunch.report.html.section import Section
from tracehunch.report.over_time_facts import leading, name_of
from tracehunch.report.over_time_quiet import verdict
from tracehunch.report.over_time_words import SHOWN, counts_text, shift_groups, shift_text
from tracehunch.units import count

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.compare.over_time.model import Drift, OverTime, Run, Shift
    from tracehunch.report.over_time_words import ShiftText

_STYLES: Final = ("over_time",)


def changes_section(report: OverTime, *, all_shifts: bool) -> Section:
    """Return all changes; of the first few, or of all, with pictures."""
    groups = shift_groups(report)
    if not groups:
        return Section("changes", "Changes", f"<p>{text(verdict(report))}</p>", styles=_STYLES)
    texts = [shift_text(some, several=len(report.runs) > 1) for some in groups]
    cards = [
        _card(number, one, some, report, drawn=all_shifts or number <= SHOWN)
        for number, (one, some) in enumerate(zip(texts, groups, strict=True), 1)
    ]
    rest = len(groups) - SHOWN
    if rest > 0 and not all_shifts:
        cards.append(f'<p class="dim">The last {count(rest)} without pictures; --all draws all.</p>')
    aside = f"{counts_text(texts)}; the costliest first"
    return Section("changes", "Changes", "".join(cards), aside=aside, styles=_STYLES)


def _card(
    number: int, one: ShiftText, some: Sequence[tuple[Run, Shift]], report: OverTime, *, drawn: bool
) -> str:
    stake = f' <span class="stake">{text(one.cost)}</span>' if one.cost else ""
    runs = f"{text(one.runs)}: " if one.runs else ""
    told = _facts_told(one, _pictures(some, report) if drawn else {}, _legend(some, report))
    return (
        f'<article class="card change {one.severity}" id="c-{number}"><h3>'
        f'<span class="tag {one.severity}">{one.severity}</span> '
        f'<span><a class="anchor" href="#c-{number}">{runs}{text(one.head)}</a></span>{stake}</h3>'
        f"{_why(one)}{told}{evidence_table(some)}</article>"
    )


def _why(one: ShiftText) -> str:
    rows = [("why", cause) for cause in one.causes]
    rows += [("findings", f"that {found}") for found in one.findings]
    rows += [("seen in", one.around)] if one.around else []
    return _facts(rows)


def _facts(rows: Sequence[tuple[str, str]]) -> str:
    items, before = [], ""
    for label, said in rows:
        items.append(f"<dt>{text(label) if label != before else ''}</dt><dd>{text(said)}</dd>")
        before = label
    return f'<dl class="facts">{"".join(items)}</dl>' if items else ""


def _facts_told(one: ShiftText, pictures: Mapping[str, str], legend: str) -> str:
    """Return the facts that say most: those that words tell, then those with a picture."""
    captions: dict[str, list[str]] = {}
    for fact in one.facts:
        runs = f" ({text(fact.runs)})" if fact.runs else ""
        grown = f", {text(fact.share)}" if fact.share else ""
        captions.setdefault(fact.name, []).append(f"{text(fact.change)}{grown}{runs}")
    told = {name: f"<b>{text(name)}</b> {'; '.join(said)}" for name, said in captions.items()}
    words = "".join(f"<li>{said}</li>" for name, said in told.items() if name not in pictures)
    drawn = "".join(
        f"<figure>{pictures[name]}<figcaption>{said}</figcaption></figure>"
        for name, said in told.items()
        if name in pictures
    )
    also = f'<p class="dim">also {text(one.also_facts)}</p>' if one.also_facts else ""
    grid = f'{legend}<div class="series">{drawn}</div>' if drawn else ""
    return f"{f'<ul>{words}</ul>' if words else ''}{grid}{also}"


def _pictures(some: Sequence[tuple[Run, Shift]], report: OverTime) -> dict[str, str]:
    """Return by name a picture for each of the facts that say most and are numbers."""
    keys = leading(list(dict.fromkeys(drift.key for _, shift in some for drift in shift.drifts)))
    found = {}
    for key in keys:
        lines = _lines(key, some, report)
        place = next(shift.place for run, shift in some if run.label == lines[0].label)
        if drawn := series_chart(lines, place):
            found[name_of(lines[0].drift)] = drawn
    return found


def _lines(key: str, some: Sequence[tuple[Run, Shift]], report: OverTime) -> list[Line]:
    """Return a line for each rank that has the fact, those that show the change before the others.

    A rank is drawn alike in all pictures.
    """
    scope = some[0][1].scope
    worst, _ = max(some, key=lambda pair: abs(pair[1].cost_us or 0.0))
    mine = {run.label: drift for run, shift in some for drift in shift.drifts if drift.key == key}
    found = []
    for number, run in enumerate(report.runs):
        drift = mine.get(run.label) or _of_run(run, scope, key)
        if drift is not None:
            order = run.label not in mine, run is not worst
            found.append((order, Line(run.label, number % LINES, drift)))
    return [line for _, line in sorted(found, key=lambda pair: pair[0])]


def _of_run(run: Run, scope: str, key: str) -> Drift | None:
    return next((one for one in run.drifts if (one.scope, one.key) == (scope, key)), None)


def _legend(some: Sequence[tuple[Run, Shift]], report: OverTime) -> str:
    """Return which line is which rank's; nothing where there is one."""
    if len(report.runs) < 2:
        return ""
    if len(report.runs) > LINES:
        worst, _ = max(some, key=lambda pair: abs(pair[1].cost_us or 0.0))
        shown = [(at, run) for at, run in enumerate(report.runs) if run is worst]
    else:
        shown = list(enumerate(report.runs))
    items = [
        f'<li><svg class="r{at % LINES}" viewBox="0 0 22 10" aria-hidden="true">'
        f'<path class="line" d="M0 5H22"/><path class="mark" d="{marks(at, [(11.0, 5.0)])}"/></svg>'
        f"{text(run.label)}</li>"
        for at, run in shown
    ]
    if len(report.runs) > LINES:
        items.append(
            '<li><svg viewBox="0 0 22 10" aria-hidden="true"><rect class="range" width="22" height="10"/>'
            "</svg>from the lowest to the highest of the other ranks</li>"
        )
    return f'<ul class="lines">{"".join(items)}</ul>'
