"""overhead-bound: the GPU waits for the host to launch the next kernel."""

from collections.abc import Iterator
from typing import Final

from tracehunch.predict.program.findings._run import WHOLE, Run
from tracehunch.predict.program.model import Foreseen
from tracehunch.units import plural, share, time_us

ID: Final = "overhead-bound"
_WARNING: Final = 0.4
_WORD: Final = 0.1
"""Parts of the run in which the GPU waits for launches."""
_CHAIN: Final = 16
"""Launches from which on there is a chain that a graph or fusion would shorten."""


def waiting(run: Run) -> Iterator[Foreseen]:
    """Report how much longer the host takes for all launches than the GPU for what they run."""
    host = run.totals.host
    waits = run.host_us - run.gpu_us
    part = waits / run.host_us if run.host_us else 0.0
    if not run.gpu_us or part < _WORD or host.launches < 2 or run.totals.amounts.untimed:
        return
    yield Foreseen(
        id=ID,
        scope=WHOLE,
        severity="warning" if part >= _WARNING and host.launches >= _CHAIN else "note",
        confidence="medium",
        time_at_stake_us=waits,
        summary=f"the host takes about {time_us(run.host_us)} for "
        f"{plural(host.launches, 'launch', 'launches')}, the "
        f"GPU {time_us(run.gpu_us)} for what they run: it waits {share(waits, run.host_us)} of the time",
        cause=f"Stated costs: {time_us(host.op_us)} an op call, {time_us(host.launch_us)} a launch and "
        f"{time_us(host.module_us)} a module call on top, without a profiler ({host.source}). Where "
        "kernels take "
        "less, the host sets the pace, and faster kernels change nothing.",
        fix=_fix(run),
        count=host.launches,
    )


def _fix(run: Run) -> str:
    advice = [f"Launch less, or launch ahead: {_ahead(run)}"]
    advice.append("larger batches give each kernel more work for the same launch")
    updates = [one.call.op for one in run.calls if one.call.phase == "optimizer"]
    if any(not op.startswith("aten::_fused_") for op in updates):
        advice.append("fused=True makes an optimizer a handful of launches")
    return f"{'; '.join(advice)}."


def _ahead(run: Run) -> str:
    """Return how launches are made ahead: code that is compiled already is fused, too."""
    if run.compiled is None or not run.compiled.inside:
        return (
            'torch.compile(model, mode="reduce-overhead") fuses elementwise kernels and replays the rest as '
            "a CUDA graph"
        )
    if run.compiled.replayed:
        return "compile what still runs outside the CUDA graphs, in as few regions as can be"
    return 'torch.compile\'s mode="reduce-overhead" replays what is compiled already as CUDA graphs'
