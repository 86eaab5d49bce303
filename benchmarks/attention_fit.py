"""The fit of attention's model of time: measurements in, `predict/roofline/fitted.toml` out.

    python benchmarks/attention_fit.py            fit on everything, write the file
    python benchmarks/attention_fit.py --check    say how well it does on shapes left out, write nothing

Measurements are those of `attention_truth.py`. Kernels of fused backends are fitted on their time in traces
(and on benchmarks so long that the host plays no part), by damped least squares on the logarithm of time,
robust against outliers, with priors: a kernel that was never measured keeps its start. What moves memory
around them, and in the unfused variants, is fitted kind by kind on single activities, by non-negative least
squares. What the host adds to benchmarks is fitted on them last (`attention_hosts.py`). Matrix products have
a model of their own (`fit_product_times.py`).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from attention_hosts import COLD_US, fit_hosts
from attention_ranges import Residual, with_ranges
from attention_truth import (
    ROOT,
    Measured,
    activities,
    in_traces,
    more_activities,
    reference_table,
    rows,
    steps_of,
    the_machine,
    timing,
)

from tracehunch.predict.roofline.coefficients import (
    BackendCost,
    Coefficients,
    KernelCost,
    StepCost,
    kernel_table,
    kernels,
    reference,
)
from tracehunch.predict.roofline.dims import Case
from tracehunch.predict.roofline.fused import fused_us, kernel_name
from tracehunch.predict.roofline.price import near_and_far, step_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from tracehunch.predict.roofline.steps import Step

FITTED: Final = ROOT / "src" / "tracehunch" / "predict" / "roofline" / "fitted.toml"

ERROR: Final = 0.06
LONG_ERROR: Final = 0.03
"""Expected relative errors of a kernel's time: in a trace, and in a long benchmark."""

LONG_US: Final = {"forward": 150.0, "backward": 600.0}
"""From how long on a benchmark of a fused kernel tells of the GPU alone; less `COLD_US`."""

FOLDS: Final = 8

MOST_DAMPING: Final = 1e6
"""Steps that are damped more would change nothing."""


def folds(measured: Sequence[Measured], count: int = FOLDS) -> list[set[tuple[int, ...]]]:
    """Return the shapes of each fold: sorted, then dealt out, so that a fold has all kinds."""
    shapes = sorted({m.shape for m in measured})
    return [set(shapes[first::count]) for first in range(count)]


def all_measured() -> list[Measured]:
    """Return everything that was measured."""
    return [*timing(), *activities(), *more_activities(), *in_traces()]


# kernels of fused backends


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
    """Return every parameter: (kernel or backend name, field)."""
    found: dict[tuple[str, str], Prior] = {}
    for name, entry in kernel_table().items():
        alone = entry["resident"] == 1
        found[name, "tile_us"] = Prior(entry["start"], 0.5)
        found[name, "head_dim_share"] = Prior(0.3, 0.15, logarithm=False)
        found[name, "lone"] = Prior(1.15 if alone else 1.5, 0.2 if alone else 0.4)
        found[name, "block_us"] = Prior(0.8 * entry["start"], 0.6)
        found[name, "link"] = Prior(1.0, 0.4)
    for name in sorted({"-".join(name.split("-")[:2]) for name in kernel_table()}):
        found[name, "launch_us"] = Prior(2.5, 0.4)
        found[name, "tail"] = Prior(0.5, 0.3, logarithm=False)
        found[name, "quantised"] = Prior(0.5, 0.3, logarithm=False)
        found[name, "mask_share"] = Prior(0.5, 0.5)
        found[name, "ragged_share"] = Prior(0.5, 0.5)
        found[name, "dropout_share"] = Prior(0.5, 0.5)
    return found


Vector = dict[tuple[str, str], float]
Timed = tuple[Case, float, float]
"""What was asked, us, and the expected relative error."""


def _assembled(x: Vector, table: Mapping[tuple[str, str], Prior]) -> Coefficients:
    """Return the coefficients that a vector stands for; only those of fused kernels are in it."""
    fields: dict[str, dict[str, float]] = defaultdict(dict)
    for (owner, field), at in x.items():
        fields[owner][field] = table[owner, field].value(at)
    known = kernels()
    return Coefficients(
        reference=reference(reference_table()),
        kernels=known,
        costs={owner: KernelCost(**values) for owner, values in fields.items() if owner in known},
        backends={owner: BackendCost(**values) for owner, values in fields.items() if owner not in known},
        hosts={},
        steps={},
        spreads={},
        fitted_on="",
    )


def fused_times(measured: Iterable[Measured]) -> list[Timed]:
    """Return what fused kernels took, from traces and long benchmarks."""
    found: list[Timed] = []
    for m in measured:
        if not m.fused:
            continue
        if m.single:
            found += [(step.fused, us, ERROR) for step, us in steps_of(m) if step.fused is not None]
        elif m.clock == "gpu" or (m.plain and m.us > LONG_US[m.direction]):
            cases = [step.fused for step in m.launched().steps if step.fused is not None]
            us, error = (m.us, ERROR) if m.clock == "gpu" else (m.us - COLD_US, LONG_ERROR)
            found.append((cases[0], us, error))
    return found


class _Problem:
    """The least squares of the fused kernels: measurements, parameters, and who depends on whom."""

    def __init__(self, timed: Sequence[Timed]) -> None:
        self.timed, self.table = timed, priors()
        self.keys = list(self.table)
        self.observed = np.log([us for _, us, _ in timed])
        self.error = np.array([error for _, _, error in timed])
        self.start = np.array([prior.x for prior in self.table.values()])
        self.widths = np.array([prior.width for prior in self.table.values()])
        self.users: dict[tuple[str, str], list[int]] = defaultdict(list)
        for index, (case, _, _) in enumerate(timed):
            for key in self._uses(case):
                self.users[key].append(index)

    def _uses(self, case: Case) -> list[tuple[str, str]]:
        """Return the parameters that a measurement depends on."""
        owners = (kernel_name(case), f"{case.family}-{case.direction}")
        unused = {
            "mask_share": case.mask_bytes == 0,
            "ragged_share": not case.mask_ragged,
            "dropout_share": not case.dropout,
        }
        return [(owner, field) for owner, field in self.keys if owner in owners and not unused.get(field)]

    def model(self, x: Any) -> Coefficients:
        """Return the coefficients at a point."""
        return _assembled(dict(zip(self.keys, x, strict=True)), self.table)

    def predicted(self, x: Any, which: Iterable[int]) -> Any:
        """Return logarithms of us."""
        model, seen = self.model(x), the_machine()
        return np.log([fused_us(self.timed[index][0], seen, model) or np.nan for index in which])

    def cost(self, log_us: Any, x: Any) -> float:
        """Return what is minimised: residuals (large ones count linearly) and distances from the priors."""
        d = (log_us - self.observed) / self.error
        offset = (x - self.start) / self.widths
        return float(2 * np.sum(np.sqrt(1 + d**2) - 1) + np.sum(offset**2))

    def jacobian(self, x: Any, log_us: Any) -> Any:
        """Return derivatives of residuals by parameters, from differences."""
        found = np.zeros((len(self.timed), len(x)))
        for column, key in enumerate(self.keys):
            users = self.users[key]
            if users:
                moved = x.copy()
                moved[column] += 1e-3
                found[users, column] = (self.predicted(moved, users) - log_us[users]) / (
                    1e-3 * self.error[users]
                )
        return found


def fit_kernels(timed: Sequence[Timed], rounds: int = 30) -> Coefficients:
    """Fit everything about the fused kernels (Levenberg and Marquardt)."""
    problem = _Problem(timed)
    x, everything, damping = problem.start, range(len(timed)), 1.0
    log_us = problem.predicted(x, everything)
    for _ in range(rounds):
        now, jacobian = problem.cost(log_us, x), problem.jacobian(x, log_us)
        d = (log_us - problem.observed) / problem.error
        weight = 1 / np.sqrt(1 + d**2)
        normal = jacobian.T @ (jacobian * weight[:, None]) + np.diag(1 / problem.widths**2)
        slope = jacobian.T @ (weight * d) + (x - problem.start) / problem.widths**2
        gained = 0.0
        while damping < MOST_DAMPING and gained <= 0:
            tried = x - np.linalg.solve(normal + damping * np.diag(np.diag(normal)), slope)
            tried_us = problem.predicted(tried, everything)
            gained = now - problem.cost(tried_us, tried)
            damping = damping * 4 if gained <= 0 else max(damping / 5, 1e-6)
        if gained > 0:
            x, log_us = tried, tried_us
        if gained < 1e-3 * max(abs(now), 1):
            break
    return problem.model(x)


# what moves memory

FEATURES: Final = ("start_us", "near_factor", "far_factor", "element_ps", "row_ns", "length_ns")

USED: Final[Mapping[str, tuple[str, ...]]] = {
    "softmax": FEATURES,
    "softmax_backward": ("start_us", "near_factor", "far_factor", "row_ns", "length_ns"),
    "all": ("start_us", "near_factor", "far_factor", "row_ns"),
    "sum": ("start_us", "near_factor", "far_factor", "row_ns"),
}
"""What the cost of a kind depends on, by its first word; others on start and bytes."""


def step_times(measured: Iterable[Measured]) -> dict[str, list[tuple[Step, float]]]:
    """Return steps that the model prices by kind, with what each took.

    Softmax under the boolean masks that were measured is left out: their values were random, which makes it
    slower than masks that people have.
    """
    found: dict[str, list[tuple[Step, float]]] = defaultdict(list)
    for m in measured:
        random = m.call.mask is not None and m.call.mask.dtype == "bool"
        for step, us in steps_of(m) if m.single else ():
            if step.fused is None and step.us is None and not (random and step.masked):
                found[step.kind].append((step, us))
    return found


def fit_steps(measured: Iterable[Measured]) -> dict[str, StepCost]:
    """Fit each kind of step on its own, by relative error."""
    return {kind: _fit_step(kind, pairs) for kind, pairs in sorted(step_times(measured).items())}


def _features(step: Step) -> tuple[float, ...]:
    """Return what each coefficient multiplies, in us."""
    seen = the_machine()
    near, far = near_and_far(step.bytes, seen)
    return (
        1.0,
        near / seen.bandwidth,
        far / seen.bandwidth,
        step.masked / 1e6,
        step.rows / 1e3,
        step.length / 1e3,
    )


def _fit_step(kind: str, pairs: Sequence[tuple[Step, float]]) -> StepCost:
    used = USED.get(kind.partition("-")[0].rpartition("_")[0] or kind.partition("-")[0], FEATURES[:3])
    features = np.array([_features(step) for step, _ in pairs])
    used = tuple(name for name in used if features[:, FEATURES.index(name)].any())
    measured = np.array([us for _, us in pairs])
    matrix = features[:, [FEATURES.index(name) for name in used]] / measured[:, None]
    sizes = np.linalg.norm(matrix, axis=0)
    matrix /= sizes
    x, weight = np.full(len(used), 0.3), np.ones(len(measured))
    for _ in range(8):
        weighted = matrix * weight[:, None]
        normal, target = weighted.T @ matrix, weighted.T @ np.ones(len(measured))
        for _ in range(400):
            for j in range(len(x)):
                x[j] = max(0.0, x[j] - (normal[j] @ x - target[j]) / max(normal[j, j], 1e-12))
        weight = 1 / np.sqrt(1 + ((matrix @ x - 1) / 0.08) ** 2)
    fitted = {name: float(f"{number:.4g}") for name, number in zip(used, x / sizes, strict=True)}
    return StepCost(**{**dict.fromkeys(FEATURES, 0.0), **fitted})


# the whole model


def fit(measured: Sequence[Measured]) -> Coefficients:
    """Fit the whole model on some measurements; without ranges."""
    model = replace(fit_kernels(fused_times(measured)), steps=fit_steps(measured))
    return replace(model, hosts=fit_hosts(measured, model))


def left_out(count: int = FOLDS) -> list[Residual]:
    """Return every measurement with what is said by a model that never saw its shape."""
    measured = all_measured()
    found = []
    for fold in folds(measured, count):
        model = fit([m for m in measured if m.shape not in fold])
        for m in measured:
            if m.shape in fold:
                gpu, own = gpu_us(model, m)
                found.append(Residual(m, gpu, own, model))
    return found


def gpu_us(model: Coefficients, m: Measured) -> tuple[float, float]:
    """Return the GPU's time by a model, and that of a fused backend's own kernels alone."""
    total = own = 0.0
    for step in m.launched().steps:
        us = step_us(step, the_machine(), model)
        assert us is not None, step.kind
        total += us
        own += us if step.fused is not None else 0.0
    return (own, own) if m.source == "traces" else (total, own)


def write(model: Coefficients, path: Path = FITTED) -> None:
    """Write `fitted.toml`."""
    table = reference_table()
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
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


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
    model = with_ranges(fit(all_measured()), residuals)
    if not options.check:
        write(model)
    from prediction import attention_time_report  # noqa: PLC0415  # the script beside this one

    attention_time_report(residuals)
    return 0


if __name__ == "__main__":
    sys.exit(main())
