"""The roofline of a scope's kernels: how much they compute for each byte, and how near the GPU's peaks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.facts.peaks import gpu_of
from tracehunch.report.html.escape import code, name, text
from tracehunch.report.html.roofline.chart import picture
from tracehunch.report.html.roofline.points import points_of, roofs_of
from tracehunch.report.html.roofline.strip import strip
from tracehunch.report.html.section import Section
from tracehunch.report.html.tables import Cell, Head, table
from tracehunch.report.kernel_rows import main_scopes
from tracehunch.report.roofline_text import peaks_text
from tracehunch.units import bandwidth, flop_rate, percent, plural, share, size, time_us

if TYPE_CHECKING:
    from tracehunch.facts.model import ScopeFacts
    from tracehunch.hardware import Gpu
    from tracehunch.report.html.roofline.points import Point
    from tracehunch.report.summary import Selection
    from tracehunch.verdict import Look

_SHOWN: Final = 40

_HEADS = (
    Head("#", number=True),
    Head("kernel", wide=True),
    Head("launched by"),
    Head("share", number=True, meaning="of the scope's GPU time"),
    Head("time", number=True, meaning="a call"),
    Head("FLOP/byte", number=True, meaning="arithmetic intensity: FLOPs for each byte to and from memory"),
    Head("FLOP/s", number=True),
    Head("bytes/s", number=True),
    Head("bytes", number=True, meaning="a call, the least that must move"),
    Head("of the peak", number=True, meaning="of the peak that bounds it"),
)


def roofline_section(look: Look, selection: Selection) -> Section | None:
    """Return the section of the first scope with kernels whose work is known; None where there is none."""
    gpu = gpu_of(look.facts.tree.trace)
    for scope in main_scopes(look, selection):
        points = points_of(scope)[:_SHOWN]
        if points:
            return _section(scope, points, gpu, look)
    return None


def _section(scope: ScopeFacts, points: list[Point], gpu: Gpu | None, look: Look) -> Section:
    roofs = [] if gpu is None else roofs_of(gpu, points)
    total = sum(kernel.gpu_time_us for kernel in scope.kernels)
    unknown = total - sum(point.time_us for point in points)
    said = [f"Kernels of {code(scope.scope.name)}, numbered by GPU time; a point's area is its time."]
    if gpu is None:
        said.append("The GPU is not one whose peaks are known, so no ceilings are drawn.")
    else:
        said.append(f"Ceilings: {text(peaks_text(look.facts.tree.trace))}.")
    if unknown > 0:
        said.append(
            f"Of {text(share(unknown, total))} of the GPU time the work is not known, or not among these."
        )
    aside = plural(len(points), "kernel")
    drawn = f"{picture(points, roofs)}{strip(points, None if gpu is None else gpu.bandwidth)}"
    html = f"<p>{' '.join(said)}</p>{drawn}{_table(points, total)}"
    return Section("roofline", "Roofline", html, aside=aside, styles=("roofline",))


def _table(points: list[Point], total: float) -> str:
    rows = [
        [
            Cell(str(at), float(at)),
            Cell(name(point.name)),
            Cell(code(point.op)),
            Cell(text(share(point.time_us, total)), point.time_us),
            Cell(text(time_us(point.time_us)), point.time_us),
            Cell(f"{point.intensity:.3g}" if point.flops else "0", point.intensity),
            Cell(text(flop_rate(point.flop_rate)) if point.flops else "-", point.flop_rate),
            Cell(text(bandwidth(point.bandwidth)), point.bandwidth),
            Cell(text(size(point.n_bytes)), float(point.n_bytes)),
            Cell(
                "-" if point.percent is None else f"{text(percent(point.percent))} {point.bound}",
                point.percent,
            ),
        ]
        for at, point in enumerate(points, 1)
    ]
    return table(_HEADS, rows, caption="Kernels of the roofline", sortable=True)
