"""``tracehunch guess attention``: what each variant of attention should show, with no GPU and no torch."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click

from tracehunch.attention import VARIANTS
from tracehunch.attention.workload import DTYPES, Workload, check
from tracehunch.cli import common
from tracehunch.cli.guess_options import answer_rows, environment_of, environment_options, rows_option
from tracehunch.cli.options import debug_option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.attention.variant import Variant
    from tracehunch.predict.environment import Environment
    from tracehunch.report.prediction import Prediction

FORMATS: Final = {"terminal": (".txt",), "json": (".json",), "toml": (".toml",)}
"""Output format -> the file extensions that ask for it."""

_SHAPE: Final[dict[str, Any]] = {
    "batch": 8,
    "heads": 16,
    "seq": 1024,
    "head_dim": 64,
    "dtype": "bfloat16",
    "causal": True,
}
_VENDORS: Final = ("NVIDIA ", "AMD ", "TESLA ")
"""How a GPU's name begins where it is given as traces have it."""

_NAMES: Final = tuple(variant.name for variant in VARIANTS)


@click.command("attention")
@rows_option(required=False)
@environment_options
@click.option("--variant", "wanted", type=click.Choice(_NAMES), multiple=True, help="Only this (repeatable).")
@click.option("--batch", type=int, metavar="N", help="Batch size.  [default: 8]")
@click.option("--heads", type=int, metavar="N", help="Query heads.  [default: 16]")
@click.option("--kv-heads", type=int, metavar="N", help="Key and value heads.  [default: as --heads]")
@click.option("--seq", type=int, metavar="N", help="Sequence length.  [default: 1024]")
@click.option("--head-dim", type=int, metavar="N", help="Size of a head.  [default: 64]")
@click.option("--dtype", type=click.Choice(DTYPES), help="Data type of q, k and v.  [default: bfloat16]")
@click.option("--causal/--full", default=None, help="Mask the future, or attend to all.  [default: causal]")
@click.option(
    "--clock",
    type=click.Choice(("gpu", "host")),
    help="Times as a trace sums them, or as a benchmark measures.  [default: gpu; with --rows host]",
)
@click.option("--format", "output_format", type=click.Choice(tuple(FORMATS)), help="Default: terminal.")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write to FILE; its extension (.txt, .json, .toml) picks the format.",
)
@debug_option
def attention(
    *,
    rows: str | None,
    gpu: str,
    torch_version: str,
    cudnn: int | None,
    wanted: Sequence[str],
    clock: Literal["gpu", "host"] | None,
    output_format: str | None,
    output: Path | None,
    **shape: Any,
) -> int:
    """Predict attention's kernels, copies, memsets, backend and time, and say why.

    No GPU and no torch is needed. For every variant that 'tracehunch attention' runs: a table, JSON, or a
    hunch.toml for 'tracehunch check'.

    With --rows, a JSON line has B, H, S, D, dtype and backend (naive, naive_inplace, math, flash, efficient,
    cudnn, auto), and may have Sk, causal and more; it comes back with "predicted". Lines that describe no
    call pass unchanged.
    """
    given = {key: value for key, value in shape.items() if value is not None}
    if rows is not None:
        _refuse(given, wanted, output_format)
        from tracehunch.predict.bulk import predict_attention_rows  # noqa: PLC0415  # tables load if used

        env = environment_of(gpu, torch_version, cudnn)
        return answer_rows(
            rows, output, lambda lines: predict_attention_rows(lines, env, clock=clock or "host")
        )
    chosen = common.pick_format(output_format, output, FORMATS)
    sizes = {**_SHAPE, **given}
    workload = check(Workload(**{"kv_heads": sizes["heads"], **sizes}))
    env = environment_of(gpu, torch_version, cudnn)
    picked = tuple(variant for variant in VARIANTS if not wanted or variant.name in wanted)
    _emit(
        _predict(picked, workload, env, clock or "gpu"), chosen, output, gpu=gpu, torch_version=torch_version
    )
    return common.FINE


def _refuse(given: dict[str, Any], wanted: Sequence[str], output_format: str | None) -> None:
    """Complain of options that --rows makes meaningless: each line says its own."""
    also = [f"--{name.replace('_', '-')}" for name in given]
    also = ["--causal/--full" if name == "--causal" else name for name in also]
    also += ["--variant"] * bool(wanted) + ["--format"] * (output_format is not None)
    if also:
        raise click.UsageError(f"{', '.join(also)} and --rows exclude each other: each line says its own")


def _predict(
    variants: Sequence[Variant], workload: Workload, env: Environment, clock: Literal["gpu", "host"]
) -> Prediction:
    from tracehunch.attention.expert import call_of  # noqa: PLC0415  # as below
    from tracehunch.predict.forecast import forecast, pinned_to  # noqa: PLC0415  # tables load if used
    from tracehunch.predict.sdpa import hazards  # noqa: PLC0415  # as above
    from tracehunch.report.prediction import Expected, Prediction  # noqa: PLC0415  # as above

    call = call_of(workload)
    expected = []
    for variant in variants:
        found = forecast(variant.name, call, env, clock=clock)
        known = () if found.sdpa is None else hazards(call, pinned_to(variant.name, env), found.sdpa)
        expected.append(Expected(variant, found, known))
    name = "" if env.gpu is None else env.gpu.name
    return Prediction(workload, env, name, clock, tuple(expected))


def _emit(prediction: Prediction, chosen: str, output: Path | None, *, gpu: str, torch_version: str) -> None:
    from tracehunch.report import prediction as terminal  # noqa: PLC0415  # tables load if used
    from tracehunch.report import prediction_hunch, prediction_json  # noqa: PLC0415  # as above

    if chosen == "json":
        common.emit(prediction_json.render(prediction), output)
    elif chosen == "toml":
        in_full = gpu.strip() if gpu.strip().upper().startswith(_VENDORS) else None
        version = torch_version.strip() if "+" in torch_version else None
        common.emit(prediction_hunch.render(prediction, device=in_full, torch=version), output)
    else:
        common.emit(terminal.render(prediction, common.view(output)), output)
