"""The fit of attention's model of time: measurements in, `predict/roofline/fitted.toml` out.

    python benchmarks/attention_fit.py            fit on everything, write the file
    python benchmarks/attention_fit.py --check    say how well it does on shapes left out, write nothing

Three kinds of measurement, from H200s (`tests/data/truth`): what a trace shows of one forward (activities, no
host in it), what the recorded traces show of models and of backwards, and medians of benchmarks (timing: host
and GPU together, forward and backward). Kernel costs are fitted on all of it by damped least squares on the
logarithm of time, robust against outliers, with priors: a kernel that was never measured keeps its start. The
steps of unfused variants are fitted one by one on the activities alone, by non-negative least squares;
benchmarks of math and naive are never seen by them.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tracehunch.hardware import all_gpus
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline.coefficients import (
    BackendCost,
    Coefficients,
    HostCost,
    KernelCost,
    Spread,
    StepCost,
    kernel_table,
    kernels,
    reference,
)
from tracehunch.predict.roofline.dims import FUSED, UNFUSED, AttentionDims, Case
from tracehunch.predict.roofline.fused import fused_us, kernel_name
from tracehunch.predict.roofline.machine import Machine
from tracehunch.predict.roofline.schedule import larger
from tracehunch.predict.roofline.steps import Step, unfused_steps
from tracehunch.predict.roofline.unfused import step_us, unfused_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

ROOT: Final = Path(__file__).resolve().parents[1]
TRUTH: Final = ROOT / "tests" / "data" / "truth"
FITTED: Final = ROOT / "src" / "tracehunch" / "predict" / "roofline" / "fitted.toml"

GPU_ERROR, HOST_ERROR = 0.06, 0.25
"""Expected relative errors of the GPU's part and of the host's."""

COVERAGE: Final = (0.05, 0.95)
"""Quantiles of measured over predicted that the ranges reach, before they are widened by a margin."""

GPU_MARGIN, HOST_MARGIN = 1.05, 1.05
"""Other shapes than those left out err a little more; hosts differ from day to day, and few were measured."""

GPU_ALONE, HOST_ALONE = 0.15, 0.5
"""Host's parts below and above which a benchmark tells of the GPU or of the host."""

LEAST, LEAST_BACKWARD, LEAST_HOST = 0.12, 0.2, 0.25
"""How far a range reaches at least: few backwards were measured, and one host."""

UNSEEN: Final = Spread(1 / 1.6, 1.6)
"""The range of what was never measured."""

FOLDS: Final = 8

MOST_DAMPING: Final = 1e6
"""Steps that are damped more would change nothing."""

LAUNCH_US, BACKWARD_US = 25.0, 150.0
"""Where the host's share of an unfused variant begins: each kernel, and a backward's autograd."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measured time in us. `clock` is "gpu" for activities, "host" for benchmarks."""

    case: Case
    clock: str
    us: float

    @property
    def shape(self) -> tuple[int, ...]:
        """What splits go by: all measurements of a shape are left out together."""
        d = self.case.dims
        return (d.batch, d.heads, d.kv_heads, d.queries, d.keys, d.head_dim, d.value_dim)

    @property
    def call(self) -> tuple[object, ...]:
        """What backends are compared on."""
        return (*self.shape, self.case.dtype, self.case.causal, self.case.backward, self.clock)

    @property
    def fused(self) -> bool:
        """Whether one kernel does it."""
        return self.case.backend in FUSED


def rows(name: str) -> list[dict[str, Any]]:
    """Return the lines of a truth file."""
    with gzip.open(TRUTH / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def _dims(row: Mapping[str, Any]) -> AttentionDims:
    keys, kv_heads, value_dim = row.get("Sk", row["S"]), row.get("Hk", row["H"]), row.get("Dv", row["D"])
    return AttentionDims(row["B"], row["H"], row["S"], keys, row["D"], kv_heads, value_dim)


@cache
def timing() -> tuple[Measurement, ...]:
    """Return the benchmarks, forward and backward."""
    found = []
    for row in rows("sdpa_timing_h200"):
        if "backend" not in row:
            continue
        common = (row["backend"], _dims(row), dtype_word(row["dtype"]), row["causal"])
        for key, backward in (("fwd_ms", False), ("bwd_ms", True)):
            if row.get(key) is not None:
                found.append(Measurement(Case(*common, backward), "host", 1e3 * row[key]))
    return tuple(found)


@cache
def activities() -> tuple[tuple[Measurement, tuple[tuple[str, float], ...]], ...]:
    """Return what traces show of single forwards, with their activities (name, us)."""
    found = []
    for row in rows("attention_activities_h200"):
        if "activities" in row and row["variant"] in (*FUSED, *UNFUSED):
            single = tuple((name, us) for name, us in row["activities"])
            total = sum(us for _, us in single)
            case = Case(row["variant"], _dims(row), dtype_word(row["dtype"]), row["causal"])
            found.append((Measurement(case, "gpu", total), single))
    return tuple(found)


@cache
def in_traces() -> tuple[Measurement, ...]:
    """Return what the recorded traces show of fused attention, some of it backward."""
    return tuple(
        Measurement(
            Case(
                row["backend"],
                _dims(row),
                dtype_word(row["dtype"]),
                row["causal"],
                row["direction"] == "backward",
            ),
            "gpu",
            row["us"],
        )
        for row in rows("attention_in_traces_h200")
        if "backend" in row
    )


@cache
def the_machine() -> Machine:
    """Return the GPU of the measurements, by the ceilings that were measured with them."""
    probes = _probes()
    gpu = next(gpu for gpu in all_gpus() if gpu.key == "h200-sxm")
    return Machine(
        gpu=gpu,
        sms=gpu.sms,
        bandwidth=probes["copy_bytes_per_s"] / 1e6,
        matrix_flops=probes["bf16_flops"] / 1e6,
        fp32_flops=probes["fp32_flops"] / 1e6,
        clock=1.0,
        tensor=1.0,
        legacy_tensor=1.0,
        general=1.0,
        reference=True,
    )


def _probes() -> dict[str, float]:
    return {row["probe"]: row["value"] for row in rows("sdpa_timing_h200") if "probe" in row}


def _reference_table() -> dict[str, Any]:
    device, probes = rows("attention_activities_h200")[0], _probes()
    return {
        "gpu": "h200-sxm",
        "torch": device["torch"],
        "cudnn": device["cudnn"],
        "copy_bytes_per_s": round(probes["copy_bytes_per_s"]),
        "matmul_flops": round(probes["bf16_flops"]),
        "fp32_flops": round(probes["fp32_flops"]),
    }


# kernel costs


@dataclass(frozen=True, slots=True)
class Prior:
    """Where a parameter starts and how far it should go; positive ones are fitted as logarithms."""

    start: float
    width: float
    logarithm: bool = True

    def value(self, x: float) -> float:
        """Return the parameter itself."""
        return math.exp(x) if self.logarithm else x

    @property
    def x(self) -> float:
        """Where the fit starts."""
        return math.log(self.start) if self.logarithm else self.start


def priors() -> dict[tuple[str, str], Prior]:
    """Return every parameter: (kernel, backend or host name, field)."""
    found: dict[tuple[str, str], Prior] = {}
    for name, entry in kernel_table().items():
        alone = entry["resident"] == 1
        found[name, "tile_us"] = Prior(entry["start"], 0.5)
        found[name, "head_dim_share"] = Prior(0.3, 0.15, logarithm=False)
        found[name, "lone"] = Prior(1.15 if alone else 1.5, 0.2 if alone else 0.4)
        found[name, "block_us"] = Prior(0.8 * entry["start"], 0.6)
    for name in sorted({"-".join(name.split("-")[:2]) for name in kernel_table()}):
        found[name, "launch_us"] = Prior(2.5, 0.4)
        found[name, "tail"] = Prior(0.5, 0.3, logarithm=False)
        found[name, "quantised"] = Prior(0.5, 0.3, logarithm=False)
    for backend, forward, backward in (("flash", 50, 330), ("efficient", 27, 390), ("cudnn", 46, 230)):
        for direction, us in (("forward", forward), ("backward", backward)):
            found[f"host-{backend}-{direction}", "us"] = Prior(us, 0.3)
            found[f"host-{backend}-{direction}", "sharpness"] = Prior(3.5, 0.3)
    return found


Vector = dict[tuple[str, str], float]


def _assembled(x: Vector, table: Mapping[tuple[str, str], Prior]) -> Coefficients:
    """Return the coefficients that a vector stands for; steps and ranges are not in it."""
    value = {key: table[key].value(x[key]) for key in x}

    def fields(name: str) -> dict[str, float]:
        return {field: number for (owner, field), number in value.items() if owner == name}

    owners = dict.fromkeys(owner for owner, _ in value)
    hosts = [owner for owner in owners if owner.startswith("host-")]
    known = kernels()
    return Coefficients(
        reference=reference(_reference_table()),
        kernels=known,
        costs={owner: KernelCost(**fields(owner)) for owner in owners if owner in known},
        backends={
            owner: BackendCost(**fields(owner))
            for owner in owners
            if owner not in known and owner not in hosts
        },
        hosts={
            owner.removeprefix("host-"): HostCost(**fields(owner), per_kernel_us=0.0, low=1.0, high=1.0)
            for owner in hosts
        },
        steps={},
        spreads={},
        fitted_on="",
    )


def middle_us(model: Coefficients, measured: Measurement) -> tuple[float, float]:
    """Return the predicted middle in us, and the host's part of it (0 to 1)."""
    case, seen = measured.case, the_machine()
    if measured.fused:
        gpu = fused_us(case, seen, model)
        assert gpu is not None
        name, launches = case.backend, 0
    else:
        steps = _steps(case)
        gpu, name, launches = unfused_us(steps, seen, model), "unfused", len(steps)
    if measured.clock == "gpu":
        return gpu, 0.0
    host = model.hosts[f"{name}-{case.direction}"]
    floor = host.us + host.per_kernel_us * launches
    power = host.sharpness
    return larger(gpu, floor, power), 1 / (1 + (gpu / floor) ** power)


def _steps(case: Case) -> tuple[Step, ...]:
    return unfused_steps(case.backend, case.dims, case.dtype, case.causal, backward=case.backward)


def _uses(case: Case) -> tuple[str, ...]:
    """Return the owners of the parameters that a measurement depends on."""
    name = kernel_name(case)
    assert name is not None
    return (name, f"{case.family}-{case.direction}", f"host-{case.backend}-{case.direction}")


class _Problem:
    """The least squares of the fused kernels: measurements, parameters, and who depends on whom."""

    def __init__(self, measured: Sequence[Measurement]) -> None:
        self.measured, self.table = measured, priors()
        self.keys = list(self.table)
        self.observed = np.log([m.us for m in measured])
        self.start = np.array([prior.x for prior in self.table.values()])
        self.widths = np.array([prior.width for prior in self.table.values()])
        self.users: dict[str, list[int]] = defaultdict(list)
        for index, m in enumerate(measured):
            for owner in _uses(m.case):
                self.users[owner].append(index)

    def model(self, x: Any) -> Coefficients:
        """Return the coefficients at a point."""
        return _assembled(dict(zip(self.keys, x, strict=True)), self.table)

    def predicted(self, x: Any, which: Iterable[int]) -> tuple[Any, Any]:
        """Return logarithms of us, and the host's parts."""
        model = self.model(x)
        pairs = [middle_us(model, self.measured[index]) for index in which]
        return np.log([us for us, _ in pairs]), np.array([part for _, part in pairs])

    def cost(self, log_us: Any, x: Any, error: Any) -> float:
        """Return what is minimised: residuals (large ones count linearly) and distances from the priors."""
        d = (log_us - self.observed) / error
        offset = (x - self.start) / self.widths
        return float(np.sum(2 * np.log(error)) + np.sum(2 * (np.sqrt(1 + d**2) - 1)) + np.sum(offset**2))

    def jacobian(self, x: Any, log_us: Any, error: Any) -> Any:
        """Return how residuals change with parameters; only those of the same kernel do."""
        found = np.zeros((len(self.measured), len(self.keys)))
        for column, (owner, _) in enumerate(self.keys):
            if which := self.users[owner]:
                moved = x.copy()
                moved[column] += 1e-4
                found[which, column] = (self.predicted(moved, which)[0] - log_us[which]) / 1e-4 / error[which]
        return found


def fit_kernels(measured: Sequence[Measurement], rounds: int = 40) -> Coefficients:
    """Fit everything about the fused kernels and the host that launches them (Levenberg and Marquardt)."""
    problem = _Problem(measured)
    x, everything, damping = problem.start, range(len(measured)), 1.0
    log_us, part = problem.predicted(x, everything)
    for _ in range(rounds):
        error = np.hypot(GPU_ERROR, HOST_ERROR * part)
        now, jacobian = problem.cost(log_us, x, error), problem.jacobian(x, log_us, error)
        d = (log_us - problem.observed) / error
        weight = 1 / np.sqrt(1 + d**2)
        normal = jacobian.T @ (jacobian * weight[:, None]) + np.diag(1 / problem.widths**2)
        slope = jacobian.T @ (weight * d) + (x - problem.start) / problem.widths**2
        gained = 0.0
        while damping < MOST_DAMPING and gained <= 0:
            tried = x - np.linalg.solve(normal + damping * np.diag(np.diag(normal)), slope)
            tried_us, tried_part = problem.predicted(tried, everything)
            gained = now - problem.cost(tried_us, tried, error)
            damping = damping * 4 if gained <= 0 else max(damping / 5, 1e-6)
        if gained > 0:
            x, log_us, part = tried, tried_us, tried_part
        if gained < 1e-3 * max(abs(now), 1):
            break
    return problem.model(x)


# steps of unfused variants

FEATURES: Final = ("start_us", "bytes_factor", "element_ps", "row_ns", "flops_factor", "depth_ns")

USED: Final[Mapping[str, tuple[str, ...]]] = {
    "product": ("start_us", "bytes_factor", "flops_factor", "depth_ns"),
    "softmax": ("start_us", "bytes_factor", "element_ps", "row_ns"),
    "all": ("start_us", "bytes_factor", "row_ns"),
}
"""What the cost of a kind depends on, by the first word; others on start and bytes."""


def step_measurements() -> list[tuple[Step, float]]:
    """Return steps with their measured us: activities in order, memsets (a product's own) aside."""
    found = []
    for m, single in activities():
        if m.fused:
            continue
        steps = _steps(m.case)
        ran = [us for name, us in single if not name.startswith("Memset")]
        if len(steps) == len(ran):
            found.extend(zip(steps, ran, strict=True))
    return found


def fit_steps() -> dict[str, StepCost]:
    """Fit each kind of step on its own, by relative error."""
    by_kind: dict[str, list[tuple[Step, float]]] = defaultdict(list)
    for step, us in step_measurements():
        by_kind[step.kind].append((step, us))
    found = {kind: _fit_step(kind, pairs) for kind, pairs in sorted(by_kind.items())}
    # repeated heads were not measured; the kernel is a copy like the one that casts
    found["repeat"] = found["cast-up"]
    return found


def _fit_step(kind: str, pairs: Sequence[tuple[Step, float]]) -> StepCost:
    used = USED.get(kind.split("-", maxsplit=1)[0], ("start_us", "bytes_factor"))
    zero = dict.fromkeys(FEATURES, 0.0)
    measured = np.array([us for _, us in pairs])
    columns = [
        [step_us(step, StepCost(**{**zero, feature: 1.0}), the_machine()) for step, _ in pairs]
        for feature in used
    ]
    matrix = np.array(columns).T / measured[:, None]
    sizes = np.linalg.norm(matrix, axis=0) + 1e-30
    matrix = matrix / sizes
    x, weight = np.full(len(used), 0.3), np.ones(len(measured))
    for _ in range(8):
        weighted = matrix * weight[:, None]
        normal, target = weighted.T @ matrix, weighted.T @ np.ones(len(measured))
        for _ in range(400):
            for j in range(len(x)):
                x[j] = max(0.0, x[j] - (normal[j] @ x - target[j]) / max(normal[j, j], 1e-12))
        weight = 1 / np.sqrt(1 + ((matrix @ x - 1) / 0.08) ** 2)
    fitted = {name: float(f"{number:.4g}") for name, number in zip(used, x / sizes, strict=True)}
    return StepCost(**{**zero, **fitted})


# the whole model


def fit(measured: Sequence[Measurement]) -> Coefficients:
    """Fit the whole model on some measurements; without ranges."""
    model = replace(fit_kernels([m for m in measured if m.fused]), steps=fit_steps())
    return replace(model, hosts={**model.hosts, **_unfused_hosts(measured, model)})


def _unfused_hosts(measured: Sequence[Measurement], model: Coefficients) -> dict[str, HostCost]:
    """Fit what the host takes for each kernel of an unfused forward; a backward was not measured."""
    slow = [m for m in measured if not m.fused and m.clock == "host" and not m.case.backward]
    best, best_loss = HostCost(0.0, LAUNCH_US, 4.0, 1.0, 1.0), math.inf
    for us in (0.0, 10.0, 20.0, 40.0, 60.0):
        for each in np.arange(12.0, 36.0, 0.5):
            host = HostCost(us, float(each), 4.0, 1.0, 1.0)
            tried = replace(model, hosts={"unfused-forward": host})
            loss = sum(min(abs(math.log(middle_us(tried, m)[0] / m.us)), 0.5) for m in slow)
            if loss < best_loss:
                best, best_loss = host, loss
    return {"unfused-forward": best, "unfused-backward": replace(best, us=BACKWARD_US)}


def folds(measured: Sequence[Measurement], count: int = FOLDS) -> list[set[tuple[int, ...]]]:
    """Return the shapes of each fold: sorted, then dealt out, so that a fold has all kinds."""
    shapes = sorted({m.shape for m in measured})
    return [set(shapes[first::count]) for first in range(count)]


def all_measurements() -> list[Measurement]:
    """Return everything that was measured."""
    return [*timing(), *(m for m, _ in activities()), *in_traces()]


def left_out(count: int = FOLDS) -> list[tuple[Measurement, float, float]]:
    """Return every measurement with its middle and host's part from a model that never saw its shape."""
    measured = all_measurements()
    found = []
    for fold in folds(measured, count):
        model = fit([m for m in measured if m.shape not in fold])
        found.extend((m, *middle_us(model, m)) for m in measured if m.shape in fold)
    return found


def with_ranges(model: Coefficients, residuals: Sequence[tuple[Measurement, float, float]]) -> Coefficients:
    """Add the ranges that hold most of the measurements that the model did not see."""
    by_spread: dict[str, list[float]] = defaultdict(list)
    by_host: dict[str, list[float]] = defaultdict(list)
    for m, middle, host_part in residuals:
        ratio, case = m.us / middle, m.case
        name = case.family if m.fused else "math" if case.backend == "math" else "naive"
        if host_part < GPU_ALONE:
            by_spread[f"{name}-{case.direction}"].append(ratio)
        elif host_part > HOST_ALONE:
            by_host[f"{case.backend if m.fused else 'unfused'}-{case.direction}"].append(ratio)
    spreads = {
        name: Spread(*_ends(ratios, LEAST_BACKWARD if "backward" in name else LEAST, GPU_MARGIN))
        for name, ratios in sorted(by_spread.items())
    }
    hosts = {}
    for name, host in model.hosts.items():
        low, high = _ends(by_host[name], LEAST_HOST, HOST_MARGIN) if name in by_host else (1 / 1.7, 1.7)
        hosts[name] = replace(host, low=low, high=high)
    for name in (*model.backends, "math-backward", "naive-backward"):
        spreads.setdefault(name, UNSEEN)
    return replace(model, spreads=spreads, hosts=hosts)


def _ends(ratios: Sequence[float], least: float, margin: float) -> tuple[float, float]:
    """Return the range's ends as factors: the quantiles, no closer to 1 than `least`."""
    low, high = np.quantile(ratios, COVERAGE)
    return (
        float(f"{min(low / margin, 1 / (1 + least)):.3f}"),
        float(f"{max(high * margin, 1 + least):.3f}"),
    )


def write(model: Coefficients) -> None:
    """Write `fitted.toml`."""
    table = _reference_table()
    device = rows("attention_activities_h200")[0]["device"]
    torch = table["torch"].split("+")[0]
    fitted_on = f"an {device.removeprefix('NVIDIA ')}, torch {torch}, cuDNN {_cudnn(table['cudnn'])}"
    lines = [
        "# Written by benchmarks/attention_fit.py from tests/data/truth: do not edit.",
        f"fitted_on = {json.dumps(fitted_on)}",
        "",
        "[reference]",
        *(f"{key} = {json.dumps(value)}" for key, value in table.items()),
    ]
    for title, group in (
        ("kernel", model.costs),
        ("backend", model.backends),
        ("host", model.hosts),
        ("step", model.steps),
        ("spread", model.spreads),
    ):
        for name, entry in group.items():
            lines += ["", f"[{title}.{name}]"]
            lines += [f"{field} = {float(f'{number:.4g}')}" for field, number in asdict(entry).items()]
    FITTED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _cudnn(version: int) -> str:
    return f"{version // 10000}.{version // 100 % 100}.{version % 100}"


def main() -> int:
    """Fit and write, or only check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args()
    residuals = left_out()
    model = with_ranges(fit(all_measurements()), residuals)
    if not options.check:
        write(model)
    from prediction import attention_time_report  # noqa: PLC0415  # the script beside this one

    attention_time_report(residuals, model)
    return 0


if __name__ == "__main__":
    sys.exit(main())
