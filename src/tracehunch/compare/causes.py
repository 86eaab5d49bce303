"""Why something changed, as far as a fact of either trace says so."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from tracehunch.compare.attention_causes import attention_causes, fused_attention_steps, is_attention
from tracehunch.compare.changes import count
from tracehunch.compare.fusion import is_tried, names_op
from tracehunch.compare.input_causes import copied_input, input_causes, inputs_of_its_op
from tracehunch.compare.kernel_words import kernel_difference
from tracehunch.compare.model import Cause
from tracehunch.compare.paths import OPTIMIZER
from tracehunch.tree import Api, source_line
from tracehunch.units import count as number
from tracehunch.units import elide, join, plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.compare.environment import EnvironmentDiff
    from tracehunch.compare.model import Change, ScopePair, Use
    from tracehunch.compare.sdpa_calls import SdpaDiff
    from tracehunch.tree import Tree
    from tracehunch.verdict import Finding

_ENGINE: Final = "autograd::engine::evaluate_function: "
_NAMED: Final = 4  # generated kernels whose ops are told
_OPS: Final = 6  # of one kernel
_NAME: Final = 72  # characters of a generated kernel's name
_SENTENCE: Final = re.compile(r"(?<=[\w)])\. (?=[A-Z])")
_FLAGS: Final = {
    "matmul_allow_tf32": ("gemm",),
    "float32_matmul_precision": ("gemm",),
    "fp16_reduced_precision": ("gemm",),
    "bf16_reduced_precision": ("gemm",),
    "blas": ("gemm",),
    "NVIDIA_TF32_OVERRIDE": ("gemm", "conv"),
    "CUBLAS_WORKSPACE_CONFIG": ("gemm",),
    "cudnn_allow_tf32": ("conv",),
    "cudnn_benchmark": ("conv",),
    "cudnn_deterministic": ("conv",),
    "cudnn_enabled": ("conv", "norm"),
}
"""Setting -> algorithms whose kernels it picks."""


@dataclass(frozen=True, slots=True)
class Scene:
    """What an explanation of a scope's changes may draw on, of both sides."""

    pair: ScopePair
    before: Tree
    after: Tree
    ops_before: Sequence[Use]
    ops_after: Sequence[Use]
    """Host ops of the scope."""
    environment: EnvironmentDiff
    sdpa: SdpaDiff | None
    gone: Sequence[Finding]
    new: Sequence[Finding]


def explained(change: Change, scene: Scene) -> Change:
    """Return the change with its causes, the most telling first."""
    return replace(change, causes=tuple(_causes(change, scene)))


def _causes(change: Change, scene: Scene) -> Iterator[Cause]:
    on_attention = is_attention(change)
    yield from _fusion(change)
    yield from _tried(change)
    yield from _optimizer(change)
    if on_attention:
        yield from attention_causes(change, scene)
    if change.before and change.after and not (on_attention and scene.sdpa and scene.sdpa.differences):
        same = not scene.environment.deciding
        yield from input_causes(change, scene.before, scene.after, same_environment=same)
    yield from _calls(change, scene)
    if not on_attention:
        yield from inputs_of_its_op(change, scene)
    yield from copied_input(change, scene.before, scene.after, scene.sdpa)
    if change.kind == "kernel":
        yield from _kernel(change, scene)
    yield from _findings(change, scene)
    yield from fused_attention_steps(change, scene)
    yield from _source(change, scene)


def _fusion(change: Change) -> Iterator[Cause]:
    """Say which ops the kernels of torch.compile are named after."""
    if change.kind not in ("fused", "unfused"):
        return
    generated = change.after if change.kind == "fused" else change.before
    ops = change.before if change.kind == "fused" else change.after
    for kernel in sorted(generated, key=lambda use: -use.time.value)[:_NAMED]:
        named = list(dict.fromkeys(_op_name(use) for use in ops if names_op(kernel, use)))
        more = len(named) - _OPS
        merged = f"{', '.join(named[:_OPS])} and {more} more" if more > 0 else join(named)
        name = elide(printable(kernel.name), _NAME)
        if change.kind == "fused":
            yield Cause("fused", f"torch.compile merges {merged} into {name}")
        else:
            verb = "runs by itself" if len(named) == 1 else "run by themselves"
            what = "it" if len(named) == 1 else "them"
            yield Cause("unfused", f"{merged} {verb}; before, torch.compile merged {what} in {name}")


def _tried(change: Change) -> Iterator[Cause]:
    """Say of kernels that torch.compile only measures that they are not the program's."""
    uses = (*change.before, *change.after)
    if uses and all(is_tried(use) for use in uses):
        text = (
            "torch.compile tries configurations of its kernels while it compiles: not the program's own work"
        )
        yield Cause("autotuning", text)


def _optimizer(change: Change) -> Iterator[Cause]:
    """Say how an optimizer works now, and did before."""
    if not change.at or not change.at[0].startswith(OPTIMIZER) or not (change.before and change.after):
        return
    first, second = _optimizer_kind(change.before), _optimizer_kind(change.after)
    if first != second:
        name = printable(change.at[0].removeprefix(OPTIMIZER).partition(".")[0], 60)
        yield Cause("optimizer", f"{name} runs {second}, it ran {first}")


def _optimizer_kind(uses: Sequence[Use]) -> str:
    ops = {use.op.rpartition("::")[2] for use in uses}
    if any(op.startswith("_fused_") for op in ops):
        return "fused (fused=True: a few kernels for all tensors)"
    if any(op.startswith("_foreach_") for op in ops):
        return "by lists of tensors (foreach=True)"
    return "tensor by tensor (foreach=False: a kernel for each step of each tensor)"


def _op_name(use: Use) -> str:
    return printable((use.path[0] if use.path else use.name).removeprefix(_ENGINE), 80)


def _calls(change: Change, scene: Scene) -> Iterator[Cause]:
    """Say that the op around is called more or less often, or another in its place."""
    roots = {use.path[0] for use in (change.before or change.after) if use.path}
    if len(roots) != 1 or change.kind in ("fused", "unfused", "slower", "faster") or _mute(change, scene):
        return
    (root,) = roots
    first, second = _called(root, scene.ops_before), _called(root, scene.ops_after)
    if first == second:
        return
    if second == 0:
        stands_in = _namesake(root, scene)
        instead = f"; {stands_in} is, in its place" if stands_in else ""
        yield Cause("op-went", f"{_plain(root)} is not called any more{instead}")
    elif first == 0:
        stands_in = _namesake(root, scene)
        instead = f", in place of {stands_in}" if stands_in else ""
        yield Cause("op-appeared", f"{_plain(root)} is called now{instead}: {_times(second)} a call")
    else:
        yield Cause("op-count", f"{_plain(root)} is called {number(first)} -> {_times(second)} a call")


def _mute(change: Change, scene: Scene) -> bool:
    """Whether the side without the op runs things whose ops are unknown, such as the replay of a graph."""
    other = scene.after if not change.after else scene.before
    return bool((change.after == () or change.before == ()) and (other.api == Api.GRAPH).any())


def _times(n: float) -> str:
    return plural(n, "time")


def _called(root: str, ops: Sequence[Use]) -> float:
    return count([use for use in ops if use.path == (root,) and use.kind == "op"])


def _namesake(root: str, scene: Scene) -> str:
    """Return the in-place or out-of-place form of an op where only the other side calls it."""
    name = root.removesuffix("_") if root.endswith("_") else f"{root}_"
    first, second = _called(name, scene.ops_before), _called(name, scene.ops_after)
    return _plain(name) if (first == 0) != (second == 0) else ""


def _findings(change: Change, scene: Scene) -> Iterator[Cause]:
    """Quote the findings of one side alone that rest on what changed."""
    sides = (
        (scene.gone, scene.before, change.before, "gone"),
        (scene.new, scene.after, change.after, "new"),
    )
    if change.is_noise or change.kind in ("slower", "faster"):
        return
    for findings, tree, uses, what in sides:
        on_cpu = any(use.kind == "op" for use in uses)
        largest = uses if on_cpu else sorted(uses, key=lambda use: -use.time.value)[:1]
        events = set(tree.trace.events([row for use in largest for row in use.rows]))
        for finding in findings:
            n_common = len(events & set(finding.evidence))
            about = n_common > (0 if on_cpu else len(events) / 2)
            if about and (finding.time_at_stake_us or finding.severity != "note"):
                text = _SENTENCE.split(finding.cause.strip(), 1)[0].rstrip(".")
                yield Cause(finding.id, f"{what} finding {finding.id}: {text}", finding.confidence)


def _kernel(change: Change, scene: Scene) -> Iterator[Cause]:
    """Say in what the kernels differ, and what picks them."""
    if is_attention(change):
        return
    if words := kernel_difference(change.before, change.after):
        same = {use.op for use in change.before} == {use.op for use in change.after}
        yield Cause("kernel", f"another kernel{' for the same op' if same else ''}: {words}")
    algorithms = {use.identity.algorithm for use in change.after if use.identity is not None}
    for entry in scene.environment.settings:
        if algorithms & set(_FLAGS.get(entry.name, ())):
            yield Cause("setting", f"{entry.name} is {entry.after}, it was {entry.before}")
    if names := [printable(one.name, 60) for one in scene.environment.deciding]:
        yield Cause("environment", f"{join(names)} differ, and with them the choice of kernels", "medium")


def _source(change: Change, scene: Scene) -> Iterator[Cause]:
    """Give the source line where the trace that has the uses has stacks."""
    tree, uses = (scene.after, change.after) if change.after else (scene.before, change.before)
    if change.kind in ("went", "appeared", "more", "replaced") and uses and uses[0].rows:
        line = source_line(tree, uses[0].rows[0])
        if line:
            yield Cause("source", f"at {printable(line, 160)}")


def _plain(op: str) -> str:
    return elide(printable(op.removeprefix(_ENGINE)), _NAME)
