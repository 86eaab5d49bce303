"""The numbers of the model of time: `kernels.toml` says what the kernels are, `fitted.toml` what they cost.

`fitted.toml` is written by `benchmarks/attention_fit.py` from measurements; nobody edits it.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Literal

from tracehunch.hardware import all_gpus

Units = Literal["legacy", "own", "fp32"]


@dataclass(frozen=True, slots=True)
class Kernel:
    """A fused kernel: its tile, how many of its blocks share an SM, the largest head dimension it takes."""

    name: str
    head_dim: int
    queries: int
    keys: int
    resident: int
    units: Units

    @property
    def decodes(self) -> bool:
        """Whether it is cuDNN's for one query, which takes the heads of a group together."""
        return "decode" in self.name


@dataclass(frozen=True, slots=True)
class KernelCost:
    """What a fused kernel costs on one SM of the reference.

    `tile_us`: a tile at the largest head dimension when the SM is full; `head_dim_share` of it grows with the
    head dimension. `lone`: how many times that a tile takes when its block has the SM for itself.
    `block_us`: a block besides its tiles (load q, write the output, fill the pipeline). `link`: how long a
    part of a sum takes that waits for the one before, as tiles of a block on an SM of its own.
    """

    tile_us: float
    head_dim_share: float
    lone: float
    block_us: float
    link: float


@dataclass(frozen=True, slots=True)
class BackendCost:
    """What the kernels of one backend and direction share.

    `launch_us`: before the first and after the last block. `tail`: blocks of the longest kind that run while
    SMs are idle at a causal call's end. `quantised`: how far equal blocks run in lockstep (0 to 1).
    `mask_share`, `ragged_share`, `dropout_share`: how much longer a tile takes with an additive mask,
    with one of rows that are not aligned, with dropout.
    """

    launch_us: float
    tail: float
    quantised: float
    mask_share: float
    ragged_share: float
    dropout_share: float


@dataclass(frozen=True, slots=True)
class HostCost:
    """What the host adds to a benchmark's time of a call.

    `cold_us`: what the call takes longer when the cache is cleared before. The least time is `first_us` for
    the first operation and `further_us` for each further one; `sharpness` is the power by which it and the
    GPU's time add (large: the larger counts). `low` and `high` are the range of the least time, as multiples.
    """

    cold_us: float
    first_us: float
    further_us: float
    sharpness: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class StepCost:
    """What a launch that moves memory costs on the reference: the sum of its parts, 0 for none.

    `start_us`; `near_factor` and `far_factor` times what a copy of its bytes would take, as far as they fit
    in the second-level cache and beyond; `element_ps` for each masked element of a softmax, `row_ns` for each
    row of a reduction, `length_ns` for each element of a row that is worked on in turn.
    """

    start_us: float
    near_factor: float
    far_factor: float
    element_ps: float
    row_ns: float
    length_ns: float


@dataclass(frozen=True, slots=True)
class Spread:
    """The range of GPU time around its middle, as factors, that holds nine of ten measurements."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Reference:
    """The GPU that the model was fitted on: measured ceilings, data-sheet peaks, software."""

    gpu: str
    sms: int
    compute_capability: str
    torch: str
    cudnn: int
    copy_bytes_per_s: float
    matmul_flops: float
    fp32_flops: float
    sheet_bandwidth: float
    sheet_matrix_flops: float
    sheet_fp32_flops: float


@dataclass(frozen=True, slots=True)
class Coefficients:
    """All of it: kernels as in `kernels.toml`, backends and hosts as "flash-forward", steps by kind.

    `fitted_on` is the GPU and software of the measurements, in words.
    """

    reference: Reference
    kernels: Mapping[str, Kernel]
    costs: Mapping[str, KernelCost]
    backends: Mapping[str, BackendCost]
    hosts: Mapping[str, HostCost]
    steps: Mapping[str, StepCost]
    spreads: Mapping[str, Spread]
    fitted_on: str


_FOLDER: Final = files(__package__)


def kernel_table() -> Mapping[str, Mapping[str, Any]]:
    """Return `kernels.toml` by kernel name."""
    table = tomllib.loads((_FOLDER / "kernels.toml").read_text(encoding="utf-8"))
    return {entry["name"]: entry for entry in table["kernel"]}


def kernels() -> dict[str, Kernel]:
    """Return the kernels that the model knows, by name."""
    return {
        name: Kernel(
            name, entry["head_dim"], entry["queries"], entry["keys"], entry["resident"], entry["units"]
        )
        for name, entry in kernel_table().items()
    }


def reference(table: Mapping[str, Any]) -> Reference:
    """Return the reference GPU from its measured ceilings, with its data sheet."""
    gpu = next(gpu for gpu in all_gpus() if gpu.key == table["gpu"])
    half = gpu.matrix_peak("bf16")
    assert half is not None
    return Reference(
        gpu=gpu.key,
        sms=gpu.sms,
        compute_capability=gpu.compute_capability,
        torch=table["torch"],
        cudnn=table["cudnn"],
        copy_bytes_per_s=table["copy_bytes_per_s"],
        matmul_flops=table["matmul_flops"],
        fp32_flops=table["fp32_flops"],
        sheet_bandwidth=gpu.bandwidth,
        sheet_matrix_flops=half,
        sheet_fp32_flops=gpu.fp32_flops,
    )


@lru_cache(maxsize=1)
def coefficients() -> Coefficients:
    """Return the fitted model that ships."""
    table = tomllib.loads((_FOLDER / "fitted.toml").read_text(encoding="utf-8"))
    return Coefficients(
        reference=reference(table["reference"]),
        kernels=kernels(),
        costs={name: KernelCost(**entry) for name, entry in table["kernel"].items()},
        backends={name: BackendCost(**entry) for name, entry in table["backend"].items()},
        hosts={name: HostCost(**entry) for name, entry in table["host"].items()},
        steps={name: StepCost(**entry) for name, entry in table["step"].items()},
        spreads={name: Spread(**entry) for name, entry in table["spread"].items()},
        fitted_on=table["fitted_on"],
    )
