"""The keys that facts and claims share: the only place where they are defined."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

from tracehunch.facts.conventions import (
    BOUND,
    COMPILED_KERNELS,
    FLOPS,
    FUSED,
    GRAPH_BREAKS,
    HBM_BYTES,
    LAST_COMPILE,
    LAST_RECOMPILE,
    RATE,
)

Kind = Literal["count", "time", "bytes", "rate", "ratio", "text", "list"]
Unit = Literal["count", "us", "bytes", "bytes/s", "flop", "flop/s", "ratio", "percent", "text"]

_UNITS: Final[Mapping[Kind, Unit]] = {
    "count": "count",
    "time": "us",
    "bytes": "bytes",
    "rate": "bytes/s",
    "ratio": "ratio",
    "text": "text",
    "list": "text",
}

_GPU: Final = "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]"
_CPU: Final = "activities=[ProfilerActivity.CPU]"
_SHAPES: Final = "record_shapes=True"
_MEMORY: Final = "profile_memory=True"


@dataclass(frozen=True, slots=True)
class Key:
    """One key: what it means, and what would record it. Values are per call of a scope."""

    name: str
    kind: Kind
    meaning: str
    needs: str = ""
    unit: Unit = "count"
    detail: str = ""
    """How it is counted, where one line does not say it."""

    @property
    def json_name(self) -> str:
        """As in reports: times carry their unit in the name."""
        return f"{self.name}_us" if self.unit == "us" else self.name


def _key(
    name: str, kind: Kind, meaning: str, needs: str = "", unit: Unit | None = None, *, detail: str = ""
) -> Key:
    return Key(name, kind, meaning, needs, unit or _UNITS[kind], detail)


_ALL: Final = (
    # counts
    _key("gpu_activities", "count", "kernels, copies and memsets together", _GPU),
    _key("kernels", "count", "compute kernels on the GPU", _GPU),
    _key("copies", "count", "memcpys on the GPU, in any direction", _GPU),
    _key("copies.dtod", "count", "memcpys within the GPU", _GPU),
    _key("copies.htod", "count", "memcpys from the host to the GPU", _GPU),
    _key("copies.dtoh", "count", "memcpys from the GPU to the host", _GPU),
    _key("copies.ptop", "count", "memcpys from one GPU to another", _GPU),
    _key("copy_kernels", "count", "kernels that only copy, cast or lay out data, by name or op", _GPU),
    _key("any_copies", "count", "copies and copy_kernels together", _GPU),
    _key("memsets", "count", "memsets on the GPU", _GPU),
    _key("leaf_ops", "count", "ops without ops inside them: what a CPU trace has in place of kernels", _CPU),
    _key("launches", "count", "host calls that put work on the GPU (a graph replay is one)", _GPU),
    _key("syncs", "count", "host calls that wait for the GPU", _GPU),
    _key("allocations", "count", "calls of cudaMalloc, cudaFree and their like", _GPU),
    # times
    _key("gpu_time", "time", "sum of the durations of kernels, copies and memsets", _GPU),
    _key("gpu_busy", "time", "time in which at least one of them ran (mean of the GPUs used)", _GPU),
    _key("wall_time", "time", "the scope's own duration on the host; for the whole trace its window"),
    _key("cpu_time", "time", "time inside ops on the scope's own thread (their union)", _CPU),
    _key("gpu_idle", "ratio", "share of wall_time that exceeds gpu_busy", _GPU),
    _key("launch_time", "time", "time inside the launches", _GPU),
    _key("queue_delay", "time", "end of a launch to start of its work: the median of launches", _GPU),
    _key("sync_time", "time", "time inside host calls that wait for the GPU", _GPU),
    # copies and memory
    _key("copy_time", "time", "sum of the durations of memcpys", _GPU),
    _key("copy_bytes", "bytes", "bytes moved by memcpys", _GPU),
    _key("copy_bandwidth", "rate", "copy_bytes over copy_time", _GPU),
    _key("allocated_bytes", "bytes", "device memory that tensors took from PyTorch's allocator", _MEMORY),
    # what ran
    _key("launch_api", "list", "the host calls that launched, most frequent first", _GPU),
    _key("dominant", "list", "ops that the program called, by GPU time (host time on a CPU)", _GPU),
    _key("sdpa.backend", "text", "math, flash, efficient, cudnn, flex, none; a list if several", _GPU),
    _key("dtype", "text", "number format of the matrix kernels, else of all; maybe a list", _SHAPES),
    _key("tensor_cores", "text", "matrix units: used, idle, mixed; none without matrix kernels", _GPU),
    _key(
        "occupancy", "ratio", "threads in use of those a multiprocessor can hold, by time (recomputed)",
        _GPU, "percent",
    ),
    # graphs and compilation
    _key(
        "fused", "list", "ops merged in kernels of torch.compile; claimed: all of these in one kernel",
        _GPU, detail=FUSED,
    ),
    _key("graph", "count", "replays of CUDA graphs", _GPU),
    _key("graph.activities", "count", "GPU activities a replay", _GPU),
    _key("compiled", "count", "compiled regions that ran", _CPU),
    _key(
        "compiled.kernels", "count", "kernels that one compiled region launches: the most of any",
        _GPU, detail=COMPILED_KERNELS,
    ),
    _key(
        "compiled.graph_breaks", "count", "graph breaks in the compiled functions that ran",
        _CPU, detail=GRAPH_BREAKS,
    ),
    _key(
        "compiled.recompiles", "count",
        "compilations of code that was compiled before: the most of any call", _CPU,
    ),
    _key(
        "compiled.last_compile", "count", "the last of the recorded calls that compiled, from 1; 0 for none",
        _CPU, detail=LAST_COMPILE,
    ),
    _key(
        "compiled.last_recompile", "count",
        "the last of the recorded calls that compiled code again, from 1; 0 for none",
        _CPU, detail=LAST_RECOMPILE,
    ),
    _key("compiled.compile_time", "time", "host time inside compilations", _CPU),
    _key("compiled.autotuning", "count", "GPU activities of the compiler's trial runs, part of all", _GPU),
    # work: see tracehunch.facts.work
    _key("bound", "text", "what limits the speed: compute, memory, overhead", _SHAPES, detail=BOUND),
    _key(
        "flops", "count", "floating-point operations of products, convolutions and attention",
        _SHAPES, "flop", detail=FLOPS,
    ),
    _key("hbm_bytes", "bytes", "least bytes between the GPU and its memory", _SHAPES, detail=HBM_BYTES),
    _key("achieved_flops", "rate", "flops over gpu_time", _SHAPES, "flop/s", detail=RATE),
    _key("achieved_bandwidth", "rate", "hbm_bytes over gpu_time", _SHAPES, detail=RATE),
)  # fmt: skip

KEYS: Final[Mapping[str, Key]] = {key.name: key for key in _ALL}
"""Name -> key, in the order in which reports show facts."""

MEANINGS: Final[Mapping[str, str]] = {key.name: f"{key.meaning} [{key.unit}]" for key in _ALL}
"""Name -> one line for ``tracehunch explain``."""
