"""The attention series as Markdown that GitHub renders: the same content as in the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report import attention_glance as glance
from tracehunch.report import attention_surprises as unexpected
from tracehunch.report.attention_footnotes import footnotes
from tracehunch.report.attention_headline import headline, interrupted_text
from tracehunch.report.attention_kernels import fused_kernels
from tracehunch.report.cut import for_comment
from tracehunch.report.markdown import code, marker, text
from tracehunch.units import time_us

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.attention.outcome import Device, Series
    from tracehunch.attention.workload import Workload
    from tracehunch.report.attention_glance import Row
    from tracehunch.report.attention_surprises import Ranked
    from tracehunch.verdict import Finding


def render(series: Series, *, next_command: str = "") -> str:
    """Headline, tables, surprises by time at stake, kernel names, and what to type next."""
    blocks = [marker("attention"), "## tracehunch attention", f"**{text(headline(series))}**"]
    if series.interrupted:
        blocks.append(text(interrupted_text(series)))
    for device, workload in glance.groups(series):
        blocks += _group(series, device, workload)
    blocks += _not_run(series)
    blocks += _surprises(series)
    blocks += _others(series)
    blocks += _cannot_tell(series)
    blocks += _kernel_names(series)
    blocks += [text(note) for note in footnotes(series)]
    if next_command:
        blocks.append(f"Next: {code(next_command)}")
    return for_comment("\n\n".join(blocks) + "\n")


def _group(series: Series, device: Device, workload: Workload) -> list[str]:
    rows = glance.group_rows(series, device, workload)
    title = "Recorded" if device.recorded else "At a glance"
    on_gpu = device.kind == "cuda"
    heads = _GPU_HEADS if on_gpu else _CPU_HEADS
    rule = [":--" if head in _TEXTS else "--:" for head in heads]
    lines = [heads, rule, *(_cells(row, on_gpu=on_gpu) for row in rows)]
    return [
        f"### {title}: {text(str(workload))}",
        text(glance.group_text(series, device, workload)),
        "\n".join(f"| {' | '.join(line)} |" for line in lines),
    ]


_TEXTS = ("variant", "what changed", "backend", "what the trace revealed")
_GPU_HEADS = [
    "variant",
    "what changed",
    "kernels",
    "memsets",
    "GPU time",
    "vs best",
    "CPU time",
    "backend",
    "what the trace revealed",
]
_CPU_HEADS = [
    "variant",
    "what changed",
    "leaf ops",
    "CPU time",
    "vs best",
    "backend",
    "what the trace revealed",
]


def _cells(row: Row, *, on_gpu: bool) -> list[str]:
    times = (
        [row.memsets, row.gpu_time, row.times_best, row.cpu_time]
        if on_gpu
        else [row.cpu_time, row.times_best]
    )
    said = f"{row.revealed}; {row.spread}" if row.spread else row.revealed
    return [code(row.name), text(row.changed), row.counts, *times, text(row.backend), text(said)]


def _not_run(series: Series) -> list[str]:
    told = [f"- {code(names)}: {text(reason)}" for names, reason in unexpected.refusals(series)]
    return [f"### {unexpected.reasons_title(series)}", "\n".join(told)] if told else []


def _surprises(series: Series) -> list[str]:
    ranked = unexpected.merged(series)
    if not ranked:
        return []
    told: set[tuple[str, str]] = set()
    return [
        f"### Surprises, {unexpected.order_text(ranked)}",
        "\n".join(line for one in ranked for line in _surprise(one, told)),
    ]


def _surprise(one: Ranked, told: set[tuple[str, str]]) -> Iterator[str]:
    names = ", ".join(one.names)
    yield f"1. **{one.surprise.severity}** {code(names)}: {text(unexpected.surprise_text(one))}"
    yield f"   - {text(unexpected.why_text(one))}"
    main, parts = unexpected.main_and_parts(one)
    for finding in (*main, *parts):
        if (one.names[0], finding.id) not in told:
            told.add((one.names[0], finding.id))
            yield from _finding(finding, "   ", whole=finding in main)


def _finding(finding: Finding, indent: str, *, whole: bool = True) -> Iterator[str]:
    """Summary, cause, fix and evidence; of what is counted in another finding no cause."""
    yield f"{indent}- {code(finding.id)}: {text(finding.summary)}"
    for word, said in unexpected.finding_parts(finding):
        if whole or word != "cause":
            yield f"{indent}  - {word}: {text(said)}"


def _others(series: Series) -> list[str]:
    lines = []
    for names, finding in unexpected.others(series):
        stake = f", {time_us(finding.time_at_stake_us)} at stake" if finding.time_at_stake_us else ""
        lines.append(f"- **{finding.severity}** {code(names)}{stake}")
        lines += _finding(finding, "  ")
    return ["### Also seen", "\n".join(lines)] if lines else []


def _cannot_tell(series: Series) -> list[str]:
    lines = [f"- {code(names)}: {text(said)}" for names, said in unexpected.cannot_tell(series)]
    return ["### Cannot tell", "\n".join(lines)] if lines else []


def _kernel_names(series: Series) -> list[str]:
    lines = [f"- {code(names)} {code(use.name)}: {text(said)}" for names, use, said in fused_kernels(series)]
    return ["### What the kernel names say", "\n".join(lines)] if lines else []
