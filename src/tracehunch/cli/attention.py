"""``tracehunch attention``: the variants of attention, each guessed, run and looked at."""

from __future__ import annotations

import os
import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tracehunch.attention import VARIANTS
from tracehunch.attention.expert import cudnn_number
from tracehunch.attention.outcome import Device, Series
from tracehunch.attention.recorded import Recording, recording
from tracehunch.attention.workload import DTYPES, Workload, check
from tracehunch.capture.ceilings import measure_ceilings
from tracehunch.capture.torch_env import import_torch, is_installed, pick_machine, versions
from tracehunch.cli.common import FINE, FOUND, LOST, emit, exit_code, note, pick_format, view
from tracehunch.cli.failures import INTERRUPTED, USAGE
from tracehunch.cli.narrator import Narrator
from tracehunch.cli.options import Command, debug_option, gate_options, outputs_options
from tracehunch.cli.series import Plan, check_folder, run_series
from tracehunch.errors import CaptureError
from tracehunch.journal import ENVIRONMENT as JOURNAL_ENVIRONMENT
from tracehunch.journal import journal_path
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline import Calibration
from tracehunch.report import attention_json, attention_markdown, attention_surprises, attention_terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

GPU_SHAPE: Final = {"batch": 8, "heads": 16, "seq": 1024, "head_dim": 64}
CPU_SHAPE: Final = {"batch": 1, "heads": 8, "seq": 512, "head_dim": 64}
"""Smaller, so that the whole series takes seconds."""

_NAMES: Final = tuple(variant.name for variant in VARIANTS)


def _size(option: str, meaning: str) -> Callable[[Command], Command]:
    """Make the option of one size of the inputs, with its default on either kind of device."""
    on_gpu, on_cpu = GPU_SHAPE[option], CPU_SHAPE[option]
    default = f"{on_gpu}; on a CPU {on_cpu}" if on_gpu != on_cpu else str(on_gpu)
    return click.option(
        f"--{option.replace('_', '-')}", type=int, metavar="N", help=f"{meaning}  [default: {default}]"
    )


@click.command("attention")
@click.option(
    "--device",
    type=click.Choice(["auto", "cuda", "cpu", "recorded"]),
    default="auto",
    show_default=True,
    help="Where to run; auto takes a GPU, else the CPU; recorded shows the H200 traces in this package.",
)
@click.option(
    "--variant", "wanted", type=click.Choice(_NAMES), multiple=True, help="Only this one (may be repeated)."
)
@_size("batch", "Batch size.")
@_size("heads", "Query heads.")
@click.option(
    "--kv-heads", type=int, metavar="N", help="Key and value heads; fewer than --heads is grouped-query."
)
@_size("seq", "Sequence length.")
@_size("head_dim", "Size of a head.")
@click.option("--dtype", type=click.Choice(DTYPES), help="Data type of q, k and v.  [default: bfloat16]")
@click.option("--causal/--full", default=None, help="Mask the future, or attend to all.  [default: causal]")
@click.option(
    "--steps", type=click.IntRange(1, 1000), help="Profiled forwards.  [default: 3; on a CPU up to 20]"
)
@click.option(
    "--warmup", type=click.IntRange(0, 1000), default=3, show_default=True, help="Forwards before them."
)
@click.option(
    "--verify/--no-verify", default=True, help="Check outputs against float64 first.  [default: verify]"
)
@click.option(
    "--save-traces", type=click.Path(file_okay=False, path_type=Path), metavar="DIR", help="Keep the traces."
)
@click.option(
    "--all", "everything", is_flag=True, help="Show all surprises in full, and what the kernel names say."
)
@click.option("--ask", is_flag=True, help="Ask for your own guess before each look, and keep the score.")
@outputs_options
@gate_options("never")
@debug_option
def attention(
    *,
    device: str,
    wanted: Sequence[str],
    kv_heads: int | None,
    steps: int | None,
    warmup: int,
    verify: bool,
    save_traces: Path | None,
    everything: bool,
    ask: bool,
    output_format: str | None,
    outputs: Sequence[Path],
    fail_on: str,
    strict: bool,
    **shape: Any,
) -> int:
    """Guess, run and look at attention in all its variants.

    For each variant the textbook and an expert on PyTorch guess what a profile shows; then it is run under
    PyTorch's profiler and looked at. What this machine cannot run is shown as recorded on an H200.
    """
    chosen = [(pick_format(output_format, output), output) for output in outputs or (None,)]
    given = {key: value for key, value in {**shape, "kv_heads": kv_heads}.items() if value is not None}
    on = _device(device)
    plan = Plan(
        variants=tuple(variant for variant in VARIANTS if not wanted or variant.name in wanted),
        workload=_recorded_workload(recording(), given, steps) if on is None else check(_workload(given, on)),
        device=recording().device if on is None else on,
        steps=steps,
        warmup=warmup,
        check=verify,
        save_to=save_traces,
    )
    _check_outputs(save_traces, outputs)
    if ask:
        check_folder(journal_path().parent, JOURNAL_ENVIRONMENT, make=True)
    _introduce(plan, given)
    if on is not None and on.kind == "cuda":
        plan = replace(plan, calibration=_calibration(plan.workload.dtype))
    narrator = Narrator(asks=ask)
    series = run_series(plan, narrator)
    if series.interrupted and not series.outcomes:
        note("no variant was done yet; fewer --steps, or --variant NAME, make it shorter")
        raise KeyboardInterrupt
    for picked, output in chosen:
        emit(_rendered(series, picked, output, everything=everything), output)
    if score := narrator.score():
        note(score)
    return _code(series, fail_on, strict=strict)


def _device(wanted: str) -> Device | None:
    """Find the device to run on; None for recorded traces, also where ``auto`` finds no usable PyTorch."""
    if wanted == "recorded":
        return None
    try:
        machine = pick_machine(wanted)
    except CaptureError as error:
        if wanted != "auto":
            todo = error.todo if "--device" in error.todo else f"{error.todo}, or use --device recorded"
            raise CaptureError(error.what, error.why, todo) from error
        note(f'{error.what}, so all is from recorded traces; pip install "tracehunch[torch]" to run here')
        return None
    cudnn = versions(import_torch()).get("cudnn_version", "") if machine.kind == "cuda" else ""
    return Device(machine.kind, machine.name, machine.torch, cudnn=cudnn_number(cudnn))


def _calibration(dtype: str) -> Calibration | None:
    """Measure a copy and a product on the GPU; None where it has no memory for them."""
    note("measuring one copy and one product, as ceilings for the guesses of time")
    found = measure_ceilings("cuda", dtype)
    if found is None:
        note("they do not fit in the free memory: the guesses of time rest on the data sheet")
        return None
    return Calibration(found.copy_bytes_per_s, {dtype_word(dtype): found.matmul_flops_per_s})


def _workload(given: Mapping[str, Any], device: Device) -> Workload:
    shape = {**(CPU_SHAPE if device.kind == "cpu" else GPU_SHAPE), **given}
    return Workload(**{"kv_heads": shape["heads"], **shape})


def _recorded_workload(recorded: Recording, given: Mapping[str, Any], steps: int | None) -> Workload:
    """Take the recorded workload, which no option can change."""
    known = {field: getattr(recorded.workload, field) for field in given}
    other = [_written(field, value) for field, value in given.items() if value != known[field]]
    other += [f"--steps {steps}"] if steps not in (None, recorded.steps) else []
    if other:
        raise CaptureError(
            f"{' '.join(other)} cannot be had from the recorded traces",
            f"they are of {recorded.workload}, {recorded.steps} steps",
            "drop it" if is_installed() else 'drop it, or pip install "tracehunch[torch]" to run here',
        )
    return recorded.workload


def _written(field: str, value: object) -> str:
    """Write an option as it was typed."""
    if field == "causal":
        return "--causal" if value else "--full"
    return f"--{field.replace('_', '-')} {value}"


def _check_outputs(save_traces: Path | None, outputs: Sequence[Path]) -> None:
    """Try the places that results will go to, before any work is done."""
    if save_traces is not None:
        check_folder(save_traces, "--save-traces", make=True)
    for output in outputs:
        check_folder(output.parent, "-o", make=False)


def _introduce(plan: Plan, given: Mapping[str, Any]) -> None:
    """Say on stderr what is about to run."""
    note(f"{plan.workload} on {plan.device}{', recorded' if plan.device.recorded else ''}")
    if plan.device.kind == "cpu" and not given.keys() & CPU_SHAPE.keys():
        note("smaller than the default on a GPU, to take seconds on a CPU; --seq and the like change it")


def _rendered(series: Series, chosen: str, output: Path | None, *, everything: bool) -> str | bytes:
    if chosen == "json":
        return attention_json.render(series)
    command = _next_command(series)
    if chosen == "html":
        from tracehunch.report.html import attention_page  # noqa: PLC0415  # loaded only where it is needed

        return attention_page.render(series, next_command=command)
    if chosen == "markdown":
        return attention_markdown.render(series, next_command=command)
    return attention_terminal.render(series, view=view(output), next_command=command, everything=everything)


def _next_command(series: Series) -> str:
    """Look closer at the trace behind the costliest surprise, or keep the traces so that one can."""
    if all(outcome.look is None for outcome in series.outcomes):
        return "tracehunch attention --device recorded"
    ranked = [one.outcome for one in attention_surprises.surprises(series)]
    kept = [outcome.trace for outcome in (*ranked, *series.outcomes) if outcome.trace is not None]
    ran = any(outcome.status == "ran" for outcome in series.outcomes)
    if not kept or (
        ran and not any(outcome.status == "ran" and outcome.trace for outcome in series.outcomes)
    ):
        return "tracehunch attention --save-traces traces"
    return f"tracehunch look {shlex.quote(_short(kept[0]))}"


def _short(path: Path) -> str:
    """Shorten a path, relative to where the user is if that is shorter."""
    return min(str(path), os.path.relpath(path), key=len)


def _code(series: Series, fail_on: str, *, strict: bool) -> int:
    """130 interrupted; 2 nothing to look at; 3 lost data, with ``strict``; 1 by ``--fail-on``; else 0."""
    if series.interrupted:
        return INTERRUPTED
    looks = [outcome.look for outcome in series.outcomes if outcome.look is not None]
    if not looks:
        return USAGE
    codes = [exit_code(look, fail_on, strict=strict) for look in looks]
    failed = any(outcome.status == "failed" for outcome in series.outcomes)
    codes.append(FOUND if failed and fail_on != "never" else FINE)
    return LOST if LOST in codes else max(codes)
