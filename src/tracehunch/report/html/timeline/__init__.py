"""The timeline: host threads and GPU streams, launches joined with what they launched, gaps by cause."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tracehunch.report.html.escape import text
from tracehunch.report.html.section import Section
from tracehunch.report.html.timeline.data import timeline_data
from tracehunch.report.html.timeline.lanes import DEEPEST
from tracehunch.report.html.timeline.window import Window, window_of
from tracehunch.units import count, plural, time_us

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.verdict import Look

LIMIT: Final = 200_000
"""Events that a page shows at most; what is left out is said."""

_KEYS: Final = (
    ("W S", "zoom in and out, at the pointer"),
    ("A D", "move left, right"),
    ("Ctrl wheel", "zoom; drag to move"),
    ("← → ↑ ↓", "select a neighbour"),
    ("F", "fit the selection"),
    ("G", "go from a launch to its kernel, or back"),
    ("0", "show all"),
    ("/", "search"),
    ("N P", "next, previous match or evidence"),
    ("Enter", "to the details"),
    ("Esc", "clear"),
)


def evidence_mark(key: str, called: str, trace: str = "") -> str:
    """Return attributes of an element that gets a button leading to evidence in the timeline.

    `key` is "f0" for the first of a look's findings, "s0" for the first of its surprises; `trace` the name
    that the timeline shows the look under, where it shows several.
    """
    of = f' data-trace="{text(trace)}"' if trace else ""
    return f' data-evidence="{key}" data-called="{text(called)}"{of}'


def timeline_section(looks: Mapping[str, Look], *, limit: int = LIMIT) -> Section | None:
    """Return the section, one trace at a time, chosen by its name; None where no event has a time."""
    windows = {name: window_of(look.facts, limit) for name, look in looks.items()}
    shown = {name: window for name, window in windows.items() if window is not None}
    if not shown:
        return None
    data = [timeline_data(name, looks[name], window) for name, window in shown.items()]
    many = len(shown) > 1
    said = "".join(
        f"<p>{f'<strong>{text(name)}</strong>: ' if many else ''}{text(_shown(window, one))}</p>"
        for (name, window), one in zip(shown.items(), data, strict=True)
    )
    if many:
        said = f"<details><summary>What is shown of each trace</summary>{said}</details>"
    aside = plural(sum(one["start"]["n"] for one in data), "event")
    return Section(
        "timeline",
        "Timeline",
        said + _controls(list(shown)),
        aside,
        data,
        scripts=tuple(f"timeline{part}" for part in ("_model", "_paint", "_words", "_pointer", "")),
        styles=("timeline",),
    )


def _controls(names: Sequence[str]) -> str:
    keys = "".join(f"<li><kbd>{text(key)}</kbd> {text(what)}</li>" for key, what in _KEYS)
    options = "".join(f"<option>{text(name)}</option>" for name in names)
    picker = f'<select id="tl-trace" aria-label="Trace">{options}</select>' if len(names) > 1 else ""
    return (
        f'<div class="timeline only-screen" id="tl" hidden><div class="bar">{picker}'
        '<input type="search" id="tl-search" placeholder="Search names, modules"'
        ' aria-label="Search names and modules">'
        '<button type="button" id="tl-next">Next</button>'
        '<button type="button" id="tl-in" aria-label="Zoom in">+</button>'
        '<button type="button" id="tl-out" aria-label="Zoom out">&minus;</button>'
        '<button type="button" id="tl-all">Show all</button>'
        '<span id="tl-found" class="dim" role="status"></span></div>'
        '<div class="lanes" id="tl-lanes" tabindex="0" role="application" aria-describedby="tl-keys"'
        ' aria-label="Timeline: arrow keys select events, W and S zoom, A and D move">'
        '<canvas id="tl-canvas" aria-hidden="true"></canvas>'
        '<div class="pane" id="tl-host"><div></div></div><div class="pane" id="tl-gpu"><div></div></div>'
        '<div class="tip" id="tl-tip" aria-hidden="true" hidden></div></div>'
        '<p id="tl-status" class="quiet" role="status"></p>'
        '<div id="tl-legend" class="legend" role="group" aria-label="Colours"></div>'
        f'<details class="keys"><summary>Keys</summary><ul id="tl-keys">{keys}</ul></details>'
        '<div id="tl-details" class="details" tabindex="-1" role="group" aria-label="Selected event"></div>'
        "</div>"
        '<p id="tl-old" hidden>This browser is too old for the timeline (it lacks DecompressionStream).</p>'
        '<p class="only-print">The timeline is drawn on screen only.</p>'
        "<noscript><p>The timeline needs JavaScript. What it shows stands in the tables of this report.</p>"
        "</noscript>"
    )


def _shown(window: Window, data: Mapping[str, Any]) -> str:
    """Say which part of the trace is shown, and what is not."""
    span = time_us((window.end_ns - window.start_ns) / 1e3)
    said = f"Shown: {window.what}, {span}, {plural(data['start']['n'], 'event')}."
    parts = (
        (window.python_left_out, "Python frames"),
        (window.short_left_out, "of the shortest host events"),
        (data["too_deep"], f"events nested deeper than {DEEPEST} levels"),
        (data["gaps"]["left_out"], "of the shortest pieces of idle time"),
    )
    if left := [f"{count(n)} {words}" for n, words in parts if n]:
        said += f" Left out to keep it fluid: {', '.join(left)}."
    if window.outside:
        lies = "lies" if window.outside == 1 else "lie"
        said += f" {plural(window.outside, 'event')} of the trace {lies} outside this window."
    return said
