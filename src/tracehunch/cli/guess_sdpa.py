"""``tracehunch guess sdpa --rows``: what PyTorch's dispatcher does with each of many SDPA calls."""

from __future__ import annotations

from pathlib import Path

import click

from tracehunch.cli.guess_options import answer_rows, environment_of, environment_options, rows_option
from tracehunch.cli.options import debug_option


@click.command("sdpa")
@rows_option(required=True)
@environment_options
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Write to FILE."
)
@debug_option
def sdpa(rows: str, gpu: str, torch_version: str, cudnn: int | None, output: Path | None) -> int:
    """Predict the backend of scaled_dot_product_attention for each JSON line.

    A line has B, H, S, D and dtype, and may have Hk, Sk, Dv, causal, mask (bool, bool_bcast, same, float32
    or a shape), dropout, grad, gqa, layout and deterministic. It comes back with "predicted": which backend
    is chosen, which take the call, why the others do not, the error it raises, and the kernels, copies and
    memsets of one forward. A line that describes the machine passes unchanged. No GPU and no torch is needed.
    """
    from tracehunch.predict.bulk import predict_sdpa_rows  # noqa: PLC0415  # tables load only where used

    env = environment_of(gpu, torch_version, cudnn)
    return answer_rows(rows, output, lambda lines: predict_sdpa_rows(lines, env))
