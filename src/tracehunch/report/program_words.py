"""The guess of a whole program in words that its reports share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.predict.sdpa.words import cudnn_name
from tracehunch.units import count, flop_count, join, plural, printable, share, size, time_range_us, time_us

if TYPE_CHECKING:
    from tracehunch.predict.program.model import (
        Foreseen,
        HostTime,
        Leader,
        ProgramGuess,
        SdpaGuess,
        Totals,
        Untold,
    )

UNKNOWN: Final = "?"
_LEADERS: Final = 5
_SMALLER: Final = 4
"""Small findings that are named; more are counted."""
_MODULES: Final = 3
"""Modules that are named; more are counted."""

BOUND: Final = {
    "gpu": "GPU-bound: the host is ahead of the GPU",
    "launch": "launch-bound: the GPU waits for the host",
    "either": "about as long on the host as on the GPU",
}


def title(guess: ProgramGuess) -> str:
    """Return what was run, and where it would."""
    env = guess.env
    gpu = "an unknown GPU" if env.gpu is None else env.gpu.name
    cudnn = "" if env.cudnn is None else f", cuDNN {cudnn_name(env.cudnn)}"
    return f"{printable(guess.program.name)} on {gpu}, torch {env.torch_name}{cudnn}"


def meaning(guess: ProgramGuess) -> str:
    """Return what was done, and with what."""
    program = guess.program
    weights = ""
    if program.parameters:
        weights = f" {count(program.parameters)} parameters ({size(program.parameter_bytes)});"
    ran = f"{plural(len(program.calls), 'op call')} recorded without a GPU, torch {program.torch};"
    return f"Expected of one run, after warm-up:{weights} {ran} nothing was computed."


def amounts(totals: Totals) -> list[tuple[str, str]]:
    """Return the totals, a label and a text each."""
    found = totals.amounts
    least = "at least " if totals.at_least else ""
    said = [("launches", f"{least}{', '.join(_counts(totals))}")]
    if found.time is None:
        said.append(("GPU time", "cannot be told"))
    else:
        roof = "" if found.roofline_us is None else f"; {time_us(found.roofline_us)} at the GPU's peaks"
        span = time_range_us(found.time.low_us, found.time.high_us)
        said.append(("GPU time", f"{least}{time_us(found.time.mid_us)} ({span}){roof}"))
    said.append(("work", f"{flop_count(found.flops)}, {size(found.bytes)} moved"))
    said.append(("host time", host_time(totals)))
    if totals.bound is not None:
        said.append(("limit", BOUND[totals.bound]))
    return said


def _counts(totals: Totals) -> list[str]:
    """Return each count; one that is not sure as "97 to 113 kernels (105)"."""
    found = totals.amounts
    told = []
    for key, number, noun in (
        ("kernels", found.kernels, "kernel"),
        ("copies", found.copies, "copy"),
        ("memsets", found.memsets, "memset"),
    ):
        low, high = totals.ranges.get(key, (number, number))
        if totals.at_least or low == high:
            told.append(plural(number, noun, key))
        else:
            told.append(f"{count(low)} to {plural(high, noun, key)} ({count(number)})")
    return told


def smaller(guess: ProgramGuess) -> str:
    """Return a line on the findings that are too small for a place of their own, "" for none."""
    found = guess.smaller
    if not found:
        return ""
    named = [_briefly(one) for one in found[:_SMALLER]]
    more = len(found) - len(named)
    rest = [f"{count(more)} more"] if more else []
    all_of = " (--format json has them whole)"
    return printable(f"{count(len(found))} smaller: {'; '.join([*named, *rest])}{all_of}")


def _briefly(one: Foreseen) -> str:
    """Return ``hidden-copy: aten::cat at model.py:7 (0.42 us)``."""
    what = f": {one.subject}" if one.subject else ""
    where = f" at {one.line}" if one.line else ""
    said = f" ({time_us(one.time_at_stake_us)})" if one.time_at_stake_us > 0 else ""
    return f"{one.id}{what}{where}{said}"


def host_time(totals: Totals) -> str:
    """Return how long the host takes, and at what stated costs."""
    host: HostTime = totals.host
    span = time_range_us(host.time.low_us, host.time.high_us)
    costs = (
        f"{plural(host.launches, 'launch', 'launches')} at {time_us(host.launch_us)}, "
        f"{plural(host.ops, 'op')} at {time_us(host.op_us)}, "
        f"{plural(host.modules, 'module call')} at {time_us(host.module_us)}"
    )
    return (
        f"about {time_us(host.time.mid_us)} ({span}); {time_us(host.profiled.mid_us)} under the profiler. "
        f"{costs}: {host.source}"
    )


def leading(leaders: tuple[Leader, ...]) -> str:
    """Return the ops that will dominate, "" where none is known: "aten::mm 52%, aten::mul 16%"."""
    return ", ".join(f"{one.op} {share(one.share, 1)}" for one in leaders[:_LEADERS])


def modules(paths: tuple[str, ...]) -> str:
    """Return the modules' paths, the first few of many."""
    named = [printable(path) or "outside modules" for path in paths]
    if len(named) <= _MODULES:
        return join(named)
    return f"{named[0]} ... {named[-1]} ({len(named)} modules)"


def sdpa(one: SdpaGuess) -> tuple[str, list[str]]:
    """Return a line on SDPA calls that are alike, and why: the reasons and known hazards."""
    backend = {None: "cannot tell", "error": "raises"}.get(one.backend, one.backend or "")
    where = modules(one.modules)
    line = f" ({printable(one.line)})" if one.line else ""
    took = "" if one.gpu_time_us is None else f", {time_us(one.gpu_time_us)} in all"
    head = (
        f"{backend}  {plural(one.calls, f'{one.phase} call')} in {where}{line}: {printable(one.call)}{took}"
    )
    return head, [printable(text) for text in one.reasons] + [
        f"{hazard.id}: {hazard.words}" for hazard in one.hazards
    ]


def stake(one: Foreseen) -> str:
    """Return what is at stake, "" for nothing."""
    return f"{time_us(one.time_at_stake_us)} at stake" if one.time_at_stake_us > 0 else ""


def untold(one: Untold) -> str:
    """Return what cannot be told, what it leaves open, and what would tell it."""
    subject = f"{plural(one.count, 'call')} of {printable(one.op)}: " if one.op else ""
    where = modules(one.modules) if any(one.modules) else ""
    at = join([part for part in (where, printable(one.line)) if part], "at")
    opened = f"; leaves open: {', '.join(one.open)}" if one.open else ""
    remedy = f". {printable(one.remedy)}" if one.remedy else ""
    return f"{subject}{printable(one.reason)}{f' ({at})' if at else ''}{opened}{remedy}"
