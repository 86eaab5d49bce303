"""Checks: what a trace shows whether or not anybody guessed it.

A check is one file, named after its id, whose docstring is its documentation page; it has one line in
``CHECKS``.
"""

import inspect
from collections.abc import Mapping
from types import ModuleType
from typing import Final

from tracehunch.checks import (
    allocation_churn,
    bias_copy,
    clock_jitter,
    cold_start,
    compile_overhead,
    copy_not_overlapped,
    cpu_plan_cost,
    dtype_round_trip,
    exposed_communication,
    for_loop_indexing,
    fp32_matmul,
    fusion_missed,
    gpu_gap,
    hidden_copy,
    host_stall,
    layout_copy,
    mask_rebuilt,
    occupancy_explained,
    overhead_bound,
    pageable_copy,
    profiler_artifact,
    recompile,
    safe_softmax,
    sdpa_known_hazard,
    sdpa_math_fallback,
    straggler,
    sync_stall,
    tensor_cores_idle,
    unfused_attention,
    unfused_optimizer,
)
from tracehunch.checks._ranking import ranked
from tracehunch.facts.model import Facts
from tracehunch.trace.collecting import uncollected
from tracehunch.verdict import CannotTell, Checked, Finding

CHECKS: Final[tuple[ModuleType, ...]] = (
    hidden_copy,
    sdpa_math_fallback,
    tensor_cores_idle,
    mask_rebuilt,
    safe_softmax,
    occupancy_explained,
    cpu_plan_cost,
    sdpa_known_hazard,
    overhead_bound,
    gpu_gap,
    host_stall,
    profiler_artifact,
    sync_stall,
    pageable_copy,
    copy_not_overlapped,
    allocation_churn,
    exposed_communication,
    straggler,
    cold_start,
    clock_jitter,
    dtype_round_trip,
    layout_copy,
    for_loop_indexing,
    unfused_optimizer,
    unfused_attention,
    fp32_matmul,
    bias_copy,
    fusion_missed,
    compile_overhead,
    recompile,
)


def run(facts: Facts) -> Checked:
    """Every check on one trace: findings by time at stake, and what no check could tell."""
    findings: list[Finding] = []
    cannot_tell: list[CannotTell] = []
    with uncollected():
        for module in CHECKS:
            for result in _outcomes(module, facts):
                if isinstance(result, Finding):
                    findings.append(result)
                else:
                    cannot_tell.append(result)
        return Checked(ranked(findings, facts), tuple(cannot_tell))


def pages() -> Mapping[str, str]:
    """Return the documentation page of each check by its id, in Markdown."""
    return {check_id(module): _page(module) for module in CHECKS}


def check_id(module: ModuleType) -> str:
    """``hidden_copy.py`` holds the check ``hidden-copy``."""
    return module.__name__.rpartition(".")[2].replace("_", "-")


def _page(module: ModuleType) -> str:
    title, _, body = inspect.cleandoc(module.__doc__ or "").partition("\n")
    return f"# {title.removesuffix('.')}\n{body}\n"


def _outcomes(module: ModuleType, facts: Facts) -> list[Finding | CannotTell]:
    try:
        return list(module.check(facts))
    except Exception as error:  # noqa: BLE001  # a defect in one check must not take the others' findings with it
        reason = f"the check failed ({type(error).__name__}: {error}); please report it"
        return [CannotTell(check_id(module), "whole", reason)]
