"""What is said of a group of SDPA calls, line by line: what was open, other versions, causes, backends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.predict.sdpa import across_versions
from tracehunch.predict.traced import UNRECORDED, causes, matters
from tracehunch.predict.traced.times import expected_times
from tracehunch.units import join, printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.predict.roofline import AttentionTime
    from tracehunch.predict.sdpa import BackendAnswer
    from tracehunch.predict.traced import Case, Group

Labelled = tuple[str, str]
"""A label, and the text beside it."""

_OPEN: Final = {
    "is_causal": "whether is_causal was set",
    "dropout": "whether there was dropout",
    "enable_gqa": "whether enable_gqa was set",
    "strides": "strides (taken to be contiguous)",
    "requires_grad": "whether q, k or v needs a gradient",
    "mask gradient": "whether the mask needs a gradient",
}


def lines_of(group: Group) -> tuple[Labelled, ...]:
    """Return the lines of a group; the same label in a row belongs together."""
    case = group.shown
    if case is None:
        return (("cannot tell", _unknown(group)),)
    lines: list[Labelled] = [("left open", text) for text in _left_open(group)]
    if group.verdict == "cannot tell":
        lines.append(("cannot tell", _unknown(group)))
    lines += _versions(group, case)
    lines += [("may be", text) for text in _causes(group, case)]
    return (*lines, *_backends(group, case))


def _causes(group: Group, case: Case) -> list[str]:
    if group.verdict != "surprise":
        return []
    return [cause.words for cause in causes(group)] or [_no_cause(group, case)]


def _left_open(group: Group) -> list[str]:
    """Say what the trace does not tell of the call, where it matters."""
    recorded = group.calls[0].recorded
    if recorded is None:
        return []
    return [_OPEN[name] for name in recorded.open if name == "strides" or matters(group, name)]


def _versions(group: Group, case: Case) -> list[Labelled]:
    """Say what other versions pick: those that the trace leaves open, or else all, where they differ."""
    if group.setting.sure:
        picked = [
            (name, _named(chosen)) for name, chosen in across_versions(case.call, case.env, same_cuda=True)
        ]
        label = "elsewhere"
    else:
        readings: dict[str, list[str]] = {}
        for one in group.cases:
            readings.setdefault(one.env.torch_name, []).append(_named(one.prediction.chosen))
        picked = [(name, join(list(dict.fromkeys(chosen)), "or")) for name, chosen in readings.items()]
        label = "by torch"
    if len({chosen for _, chosen in picked} | {_named(case.prediction.chosen)}) < 2:  # all alike
        return []
    return [(label, _runs(picked))]


def _named(chosen: str | None) -> str:
    return chosen or "unknown"


def _runs(picked: Sequence[tuple[str, str]]) -> str:
    """``2.9 flash, 2.10 to 2.11 cudnn``."""
    runs: list[tuple[str, str, str]] = []
    for name, chosen in picked:
        if runs and runs[-1][2] == chosen:
            runs[-1] = (runs[-1][0], name, chosen)
        else:
            runs.append((name, name, chosen))
    return ", ".join(
        f"{first if first == last else f'{first} to {last}'} {chosen}" for first, last, chosen in runs
    )


def _no_cause(group: Group, case: Case) -> str:
    return (
        f"nothing that is known: by the rules of torch {case.env.torch_name} {group.ran} does not run "
        "here; please report it with this trace"
    )


def _backends(group: Group, case: Case) -> list[Labelled]:
    """One line a backend, in the order in which PyTorch asks them; the same grounds are told once."""
    order = case.prediction.order
    answers = sorted(
        (answer for answer in case.prediction.answers if not _is_absent(answer)),
        key=lambda answer: order.index(answer.backend) if answer.backend in order else len(order),
    )
    times = expected_times(case)
    refused: dict[str, str] = {}
    lines: list[Labelled] = []
    for answer in answers:
        text = _backend(group, case, answer, times.get(answer.backend)) + _otherwise(group, case, answer)
        lines.append((answer.backend, f"refuses as {refused[text]} does" if text in refused else text))
        if answer.accepted is False:
            refused.setdefault(text, answer.backend)
    return lines


def _is_absent(answer: BackendAnswer) -> bool:
    """Whether the device has no such backend."""
    return answer.first is not None and answer.first.check == "not-on-device"


def _backend(group: Group, case: Case, answer: BackendAnswer, time: AttentionTime | None) -> str:
    expected = f"; {_range(time.low_us, time.high_us)} expected" if time is not None else ""
    if answer.accepted is None:
        return f"cannot tell: {answer.unknown.removeprefix(f'{answer.backend}: ')}"
    if not answer.accepted:
        reasons = "; also ".join(rejection.advice for rejection in answer.rejections)
        return f"{'ran, though it should refuse' if answer.backend == group.ran else 'refuses'}: {reasons}"
    if answer.backend == case.prediction.chosen:
        said = "is picked" if answer.backend == group.ran else "would be picked"
        return f"{said}{_why_first(case, answer.backend)}{expected}"
    ran = "ran; " if answer.backend == group.ran else ""
    picked = case.prediction.chosen
    return f"{ran}takes the call{f', but is asked after {picked}' if picked else ''}{expected}"


def _otherwise(group: Group, case: Case, answer: BackendAnswer) -> str:
    """Say under which of the versions that the trace leaves open a backend answers otherwise."""
    other: dict[str, str] = {}
    for one in group.cases:
        same = next((it for it in one.prediction.answers if it.backend == answer.backend), None)
        if one.env.torch != case.env.torch and same is not None and same.accepted is not answer.accepted:
            other.setdefault(one.env.torch_name, "refuses" if same.accepted is False else "takes the call")
    return f"; under torch {_runs(list(other.items()))}" if other else ""


def _why_first(case: Case, backend: str) -> str:
    order = case.prediction.order
    if backend == order[0]:
        return f": {case.prediction.why}" if case.prediction.why else ""
    return f": the first of {join(order[: order.index(backend) + 1])} that takes the call"


def _range(low_us: float, high_us: float) -> str:
    """Two times in the unit of the larger, with the few digits that an estimate deserves: ``74-97 us``."""
    step, unit = (1e3, "ms") if high_us >= 1e3 else (1.0, "us")  # a millisecond
    low, high = (_rounded(time / step) for time in (low_us, high_us))
    return f"{low}-{high} {unit}"


def _rounded(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"  # two digits


def _unknown(group: Group) -> str:
    todo = "; record with record_shapes=True" if group.unknown == UNRECORDED else ""
    return f"{printable(group.unknown)}{todo}"
