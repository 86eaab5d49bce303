"""What the attention series tells at first sight: the surprises in short, and what there is besides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.attention.leaves import BOOKKEEPING
from tracehunch.report import attention_surprises as unexpected
from tracehunch.report.attention_footnotes import checked, outside_window
from tracehunch.report.attention_kernels import fused_kernels
from tracehunch.report.finding_texts import SEVERITY_STYLE
from tracehunch.report.layout import PROSE, Line, Span, Style, View, heading, paragraph, wrap
from tracehunch.units import cells, join, plural, printable, time_us

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.attention.outcome import Series
    from tracehunch.report.attention_surprises import Ranked
    from tracehunch.verdict import Finding

_SHOWN: Final = 5
"""Surprises on the first screen."""

_LABEL: Final = 10
"""Columns of the words cause, fix and evidence."""


def brief(series: Series, view: View) -> Iterator[Line]:
    """Tell the surprises with cause, fix and evidence in short, other findings, and what is left out."""
    ranked = unexpected.merged(series)
    if ranked:
        yield from heading("Surprises", unexpected.order_text(ranked))
    told: set[tuple[str, str]] = set()
    for number, one in enumerate(ranked[:_SHOWN], start=1):
        yield from _surprise(number, one, told, view)
    yield from _others(series, view)
    yield from cannot_tell(series, view)
    for number, note in enumerate(filter(None, (*checked(series), *outside_window(series)))):
        if number == 0:
            yield ()
        yield from paragraph(note, view, style="dim")
    left = f"Left out: {_left_out(series, len(ranked) - _SHOWN)}; --all shows everything."
    yield from [(), *paragraph(left, view, style="dim")]


def surprise_head(number: int, one: Ranked, view: View) -> Iterator[Line]:
    """Give the variants, what was guessed and seen, and the time at stake."""
    severity = Span(one.surprise.severity, SEVERITY_STYLE[one.surprise.severity])
    first = (f"{number:3}  ", severity, "  ", Span(", ".join(one.names), "bold"), ": ")
    yield from hanging(first, unexpected.surprise_text(one), view, indent=5)


def other_head(names: str, finding: Finding) -> Line:
    """Give the severity, the variants, and the time at stake of a finding that no surprise rests on."""
    severity = Span(finding.severity, SEVERITY_STYLE[finding.severity])
    stake = f"  {time_us(finding.time_at_stake_us)} at stake" if finding.time_at_stake_us else ""
    return ("  ", severity, "  ", Span(names, "bold"), stake)


def cannot_tell(series: Series, view: View) -> Iterator[Line]:
    """Tell what the traces cannot decide: never left out."""
    unknown = unexpected.cannot_tell(series)
    if unknown:
        yield from heading("Cannot tell")
    for names, said in unknown:
        yield from hanging(("  ", Span(names, "bold"), ": "), said, view, indent=4)


def labelled(word: str, said: str, view: View) -> list[Line]:
    """Wrap a paragraph beside its word."""
    style: Style = "dim" if word == "evidence" else ""
    indent = 7 + _LABEL
    return paragraph(
        said, view, first=(Span(f"       {word:<{_LABEL - 1}} ", "dim"),), indent=indent, style=style
    )


def hanging(first: tuple[Span | str, ...], text: str, view: View, *, indent: int) -> Iterator[Line]:
    """Wrap a paragraph that starts after ``first`` and goes on at ``indent``, left of where it started."""
    lead = sum(cells(span if isinstance(span, str) else span.text) for span in first)
    filler = "." * max(lead - indent - 1, 1)  # holds the place of what stands before the text
    wrapped = wrap(f"{filler} {text}", max(min(view.width, PROSE) - indent, 20))
    yield (*first, wrapped[0][len(filler) + 1 :])
    for more in wrapped[1:]:
        yield (" " * indent, more)


def _surprise(number: int, one: Ranked, told: set[tuple[str, str]], view: View) -> Iterator[Line]:
    yield from surprise_head(number, one, view)
    main, parts = unexpected.main_and_parts(one)
    if not main:
        yield from _plain_explanation(one, view)
    for finding in main:
        known = (one.names[0], finding.id) in told
        told.add((one.names[0], finding.id))
        yield from _known(finding, view) if known else _finding(finding, view)
    for finding in parts:
        if (one.names[0], finding.id) not in told:
            told.add((one.names[0], finding.id))
            yield from labelled("with it", f"{finding.id}: {_clause(finding)}", view)


def _plain_explanation(one: Ranked, view: View) -> Iterator[Line]:
    """Tell what explains a surprise without a finding: nothing, or the views that the table tells of."""
    if one.surprise.explained_by == (BOOKKEEPING,):
        said = "explained: the work is as guessed, the rest only views or allocates (see the table)"
        evidence = unexpected.evidence_text(one.surprise.evidence)
        yield from paragraph(f"{said}; {evidence}", view, indent=7)
    else:
        yield from paragraph(unexpected.explained_text(one), view, indent=7)


def _known(finding: Finding, view: View) -> list[Line]:
    return paragraph(f"explained by {finding.id}, as above", view, indent=7)


def _finding(finding: Finding, view: View) -> Iterator[Line]:
    lead = ("       ", Span(f"{finding.id}: ", "bold"))
    yield from hanging(lead, printable(finding.summary), view, indent=7)
    for word, said in unexpected.finding_parts(finding):
        yield from labelled(word, unexpected.first_sentence(said), view)


def _others(series: Series, view: View) -> Iterator[Line]:
    left = unexpected.others(series)
    if left:
        yield from heading("Also seen")
    for names, finding in left:
        severity = Span(finding.severity, SEVERITY_STYLE[finding.severity])
        first = ("  ", severity, "  ", Span(names, "bold"), ": ")
        yield from hanging(first, f"{finding.id}: {printable(finding.summary)}", view, indent=4)
        for word, said in unexpected.finding_parts(finding) if finding.severity != "note" else ():
            yield from labelled(word, unexpected.first_sentence(said), view)


def _clause(finding: Finding) -> str:
    """Return what a finding says before its numbers."""
    return printable(finding.summary).partition(": ")[0]


def _left_out(series: Series, more: int) -> str:
    kernels = len(fused_kernels(series))
    parts = [plural(more, "more surprise")] if more > 0 else []
    parts += ["causes and fixes in full"] if unexpected.surprises(series) or unexpected.others(series) else []
    parts += [f"what {plural(kernels, 'kernel name')} say{'s' * (kernels == 1)}"] if kernels else []
    return join([*parts, "the seals of the guesses"])
