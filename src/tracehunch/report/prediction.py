"""What each variant of attention should show, before it runs: two tables, then why."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.predict.forecast import BY_HAND, plain_name, shares
from tracehunch.predict.roofline import AttentionTime
from tracehunch.predict.sdpa.words import cudnn_name
from tracehunch.report.layout import Column, Line, Span, View, draw, heading, paragraph, table
from tracehunch.units import join, share, size, time_us

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracehunch.attention.variant import Variant
    from tracehunch.attention.workload import Workload
    from tracehunch.predict.environment import Environment
    from tracehunch.predict.forecast import Forecast
    from tracehunch.predict.roofline.time import Clock
    from tracehunch.predict.sdpa import Hazard, SdpaPrediction

UNKNOWN: Final = "?"
_RAISES: Final = "raises"
_ERROR: Final = "the call raises"
_NONE: Final = "-"
_GENERAL: Final = 3
"""From how many variants on a reason is told once, for all of them."""

_LEADERS: Final = 4
"""Ops that are named by their share of a variant's GPU time, at most."""

_COUNTS: Final = (
    Column("variant", "left"),
    Column("backend", "left"),
    Column("kernels"),
    Column("copies"),
    Column("memsets"),
    Column("time"),
    Column("range"),
)
_WORK: Final = (
    Column("variant", "left"),
    Column("backward"),
    Column("range"),
    Column("FLOPs"),
    Column("bytes"),
    Column("bound", "left"),
)


@dataclass(frozen=True, slots=True)
class Expected:
    """One variant, what is expected of it, and the known hazards of its SDPA call."""

    variant: Variant
    forecast: Forecast
    hazards: tuple[Hazard, ...] = ()


@dataclass(frozen=True, slots=True)
class Prediction:
    """All variants of one workload in one environment; `clock` is what the times are of."""

    workload: Workload
    env: Environment
    gpu_name: str
    clock: Clock
    expected: tuple[Expected, ...]


def render(prediction: Prediction, view: View) -> str:
    """Return the prediction as text."""
    lines: list[Line] = [
        *paragraph(title(prediction), view, style="bold"),
        *paragraph(_meaning(prediction), view, style="dim"),
        (),
        *table(_COUNTS, [_counts(one) for one in prediction.expected], view),
    ]
    working = [one for one in prediction.expected if one.forecast.flops is not None]
    if working:
        lines += [(), *table(_WORK, [_work(one) for one in working], view)]
    if ranking := fastest(prediction.expected):
        lines += [(), *paragraph(ranking, view)]
    lines += heading("Why")
    said = {one.variant.name: reasons(one) for one in prediction.expected}
    counted = Counter(reason for one in said.values() for reason in one)
    general = [
        reason for reason, times in counted.items() if times >= _GENERAL and not reason.startswith(_ERROR)
    ]
    for name, own in said.items():
        rest = [reason for reason in own if reason not in general]
        lines += _explained(name, rest, view) if rest else []
    if general:
        lines += _explained("several variants", general, view)
    if found := hazards_of(prediction.expected):
        lines += heading("Known hazards")
        for hazard, names in found:
            text = f"{hazard.words}; {hazard.todo} ({', '.join(names)}) {hazard.links[0]}"
            lead: Line = (
                "  ",
                Span(hazard.severity, "yellow" if hazard.severity == "warning" else "dim"),
                " ",
            )
            lines += paragraph(text, view, first=lead, indent=4)
    return draw(lines, view)


def title(prediction: Prediction) -> str:
    """Return the workload and where it would run."""
    env = prediction.env
    cudnn = "" if env.cudnn is None else f", cuDNN {cudnn_name(env.cudnn)}"
    return f"Attention {prediction.workload} on {prediction.gpu_name}, torch {env.torch_name}{cudnn}"


def reasons(one: Expected) -> list[str]:
    """Say why the backend was chosen, why others were refused, and what numbers rest on."""
    found = one.forecast
    said: list[str] = []
    if found.sdpa is not None:
        said += _dispatch(one.variant.name, found.sdpa)
    if found.raises is not None:
        return [*said, f"{_ERROR}: {found.raises}"]
    said += found.forward.reasons
    if isinstance(found.time, AttentionTime):
        said += found.time.why
    elif found.time.reason not in said:
        said.append(f"no time: {found.time.reason}")
    if isinstance(found.backward, AttentionTime) and isinstance(found.time, AttentionTime):
        said += [why for why in found.backward.why if why not in found.time.why and why.startswith("no ")]
    if led := leading(found):
        said.append(f"leads: {led}")
    said.append(f"confidence: {confidence(found)}")
    return list(dict.fromkeys(said))


def leading(found: Forecast) -> str:
    """Return which called ops lead by GPU time, as "aten::masked_fill 43%, aten::softmax 31%"."""
    return ", ".join(f"{op} {share(part, 1)}" for op, part in shares(found.forward)[:_LEADERS])


def confidence(found: Forecast) -> str:
    """Return how sure counts and times are, as "high", or "medium in counts, high in times"."""
    counts = found.forward.confidence
    if not isinstance(found.time, AttentionTime):
        return f"{counts} in counts"
    times = found.time.confidence
    return counts if counts == times else f"{counts} in counts, {times} in times"


def refused(name: str, sdpa: SdpaPrediction) -> dict[str, list[str]]:
    """Return by backend why it does not take the call, or why that cannot be told.

    Of a variant that is pinned to a backend it is that one's words only.
    """
    pinned = None if plain_name(name) == "auto" else plain_name(name)
    found: dict[str, list[str]] = {}
    for answer in sdpa.answers:
        if answer.accepted or (pinned is not None and answer.backend != pinned):
            continue
        words = [rejection.advice for rejection in answer.rejections]
        found[answer.backend] = words or [answer.unknown]
    return found


def fastest(expected: Iterable[Expected]) -> str:
    """Say which variant should take the least time, and which others' ranges reach as low; "" for one."""
    timed = [
        (one.variant.name, one.forecast.time)
        for one in expected
        if isinstance(one.forecast.time, AttentionTime) and plain_name(one.variant.name) != "auto"
    ]
    if len(timed) < 2:  # nothing to compare
        return ""
    timed.sort(key=lambda pair: pair[1].mid_us)
    best_name, best = timed[0]
    near = [name for name, time in timed[1:] if time.low_us <= best.mid_us]
    text = f"Fastest: {best_name}, about {time_us(best.mid_us)}"
    return f"{text}; {join(near)} may be as fast." if near else f"{text}."


def hazards_of(expected: Iterable[Expected]) -> list[tuple[Hazard, list[str]]]:
    """Return each hazard once, with the variants that have it."""
    found: dict[str, tuple[Hazard, list[str]]] = {}
    for one in expected:
        for hazard in one.hazards:
            found.setdefault(f"{hazard.id} {hazard.words}", (hazard, []))[1].append(one.variant.name)
    return list(found.values())


def _dispatch(name: str, sdpa: SdpaPrediction) -> list[str]:
    said: list[str] = []
    if plain_name(name) == "auto":
        if sdpa.ran is not None:
            said.append(f"takes {sdpa.ran}: the first of {', '.join(sdpa.order)} that accepts")
        said.append(sdpa.why)
        later = [one.backend for one in sdpa.answers if one.accepted and one.backend != sdpa.ran]
        if later:
            said.append(f"{join(later)} would take it, too")
    unknown = {answer.backend for answer in sdpa.answers if answer.accepted is None}
    for backend, words in refused(name, sdpa).items():
        lead = "cannot tell about" if backend in unknown else f"{backend} refuses:"
        said += [f"{lead} {one}" for one in words]
    if sdpa.cannot_tell:
        said.append(f"cannot tell the backend: {sdpa.cannot_tell}")
    return [one for one in said if one]


def _meaning(prediction: Prediction) -> str:
    clock = (
        "the sum of its kernels, copies and memsets, as a trace shows"
        if prediction.clock == "gpu"
        else "what a benchmark measures around the call, the host's launches included"
    )
    return f"Expected of one forward. Time is {clock}; a range should hold nine of ten measurements."


def _counts(one: Expected) -> list[Span | str]:
    found = one.forecast
    head: list[Span | str] = [one.variant.name]
    if found.raises is not None:
        return [*head, Span(_RAISES, "yellow"), *[_NONE] * 5]
    forward = found.forward
    by_hand = plain_name(one.variant.name) in BY_HAND
    counts = (forward.kernel_count, forward.copy_count, forward.memsets)
    return [
        *head,
        _NONE if by_hand else found.backend or UNKNOWN,
        *(UNKNOWN if count is None else str(count) for count in counts),
        *_times(found.time),
    ]


def _work(one: Expected) -> list[Span | str]:
    found = one.forecast
    return [
        one.variant.name,
        *_times(found.backward),
        UNKNOWN if found.flops is None else _flops(found.flops),
        UNKNOWN if found.hbm_bytes is None else size(found.hbm_bytes),
        found.bound or UNKNOWN,
    ]


def _times(time: object) -> list[Span | str]:
    if not isinstance(time, AttentionTime):
        return [UNKNOWN, UNKNOWN]
    return [time_us(time.mid_us), _range(time.low_us, time.high_us)]


def _range(low: float, high: float) -> str:
    """Two times in the larger one's unit: "0.92-1.36 ms"; the ends of a range deserve no more digits."""
    if high >= 1e6:  # a second
        return f"{low / 1e6:.2f}-{high / 1e6:.2f} s"
    if high >= 1e3:  # a millisecond
        return f"{low / 1e3:.2f}-{high / 1e3:.2f} ms"
    digits = 0 if low >= 100 else 1  # three digits suffice
    return f"{low:.{digits}f}-{high:.{digits}f} us"


def _flops(flops: int) -> str:
    for step, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if flops >= step:
            return f"{flops / step:.3g} {prefix}"
    return f"{flops:,}"


def _explained(name: str, said: list[str], view: View) -> list[Line]:
    lines: list[Line] = [("  ", Span(name, "cyan"))]
    for one in said:
        lines += paragraph(one, view, first=("    ",), indent=4)
    return lines
