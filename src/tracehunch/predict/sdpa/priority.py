"""The order in which PyTorch asks SDPA's backends."""

from dataclasses import dataclass
from typing import Final

from tracehunch.predict.environment import Backend, Device, Environment
from tracehunch.predict.releases import CudnnFirst, Release

STATIC: Final[tuple[Backend, ...]] = ("flash", "efficient", "math", "cudnn", "overrideable")
CUDNN_FIRST: Final[tuple[Backend, ...]] = ("cudnn", "flash", "efficient", "math", "overrideable")

_FIXED: Final[dict[Device, tuple[tuple[Backend, ...], str]]] = {
    "cpu": (("flash", "math"), "on a CPU the order is fixed: flash, math"),
    "mps": (
        ("math",),
        "on MPS it is math (_scaled_dot_product_attention_math_for_mps without dropout or gradients)",
    ),
    "xpu": (("overrideable", "math"), "on XPU the fused kernels of oneDNN come first"),
}


@dataclass(frozen=True, slots=True)
class Priority:
    """An order, and why it is that; `other` may hold instead, depending on what `unknown` says."""

    order: tuple[Backend, ...]
    why: str
    other: tuple[Backend, ...] | None = None
    unknown: str = ""


def priority(env: Environment, release: Release) -> Priority:
    """Return the order in which backends are asked."""
    if env.device in _FIXED:
        return Priority(*_FIXED[env.device])
    default = _default(env, release)
    asked = default
    if env.order is not None:
        asked = Priority(_then(env.order, STATIC), "the order was set by hand")
    if env.pinned and env.set_priority:
        asked = Priority(
            _then(env.pinned, asked.order),
            "sdpa_kernel(set_priority=True) puts its list first",
            None if asked.other is None else _then(env.pinned, asked.other),
            asked.unknown,
        )
    if env.first_call and asked is not default and CUDNN_FIRST in (default.order, default.other):
        why = "the first SDPA call of the process replaces the order that was set"
        rule = release.cudnn_first
        if default.other is None and rule is not None and rule.replaces_order:
            return Priority(CUDNN_FIRST, why)
        return Priority(asked.order, asked.why, CUDNN_FIRST, f"whether {why}")
    return asked


def _then(first: tuple[Backend, ...], order: tuple[Backend, ...]) -> tuple[Backend, ...]:
    return (*first, *(backend for backend in order if backend not in first))


def _default(env: Environment, release: Release) -> Priority:
    """Return the order of a process that set none."""
    if env.device != "cuda":
        return Priority(STATIC, "the static order: flash, efficient, math")
    rule = release.cudnn_first
    if rule is None or (rule.only_micro is not None and env.micro not in (None, rule.only_micro)):
        return Priority(STATIC, f"torch {env.torch_name} asks cuDNN last, below math: flash first")
    if env.compute_capability is None:
        return Priority(STATIC, "", CUDNN_FIRST, "the GPU's compute capability")
    unknown = []
    for holds, words in (_gpu(env, rule), _cudnn(env, rule), _variable(env, rule), _patch(env, rule)):
        if holds is None:
            unknown.append(words)
        elif not holds:
            return Priority(STATIC, f"{words}: flash first")
    if unknown:
        return Priority(STATIC, "", CUDNN_FIRST, unknown[0])
    major, minor = env.compute_capability
    return Priority(
        CUDNN_FIRST, f"torch {env.torch_name} asks cuDNN first on compute capability {major}.{minor}"
    )


# One condition each: whether it holds (None: not known), and why not or what would have to be known.
_Condition = tuple[bool | None, str]


def _gpu(env: Environment, rule: CudnnFirst) -> _Condition:
    assert env.compute_capability is not None
    major, minor = env.compute_capability
    where = f"compute capability {major}.{minor}"
    if major not in rule.majors:
        return False, f"{where} does not ask cuDNN first (9.0 and 10.x do)"
    now = rule.minors is None or minor in rule.minors
    before = rule.minors_before_cuda13 is None or minor in rule.minors_before_cuda13
    words = f"{where} does not ask cuDNN first (of {major}.x only some do)"
    if now == before:
        return now, words
    if env.cuda is None:
        return None, "the CUDA version that torch was built for"
    return (now if env.cuda >= (13, 0) else before), words


def _cudnn(env: Environment, rule: CudnnFirst) -> _Condition:
    if rule.above_cudnn is None:
        return True, ""
    if env.cudnn is None:
        return None, "the version of cuDNN"
    return env.cudnn > rule.above_cudnn, f"cuDNN {env.cudnn} is not newer than {rule.above_cudnn}"


def _variable(env: Environment, rule: CudnnFirst) -> _Condition:
    off = bool(rule.variable) and env.env.get(rule.variable) == rule.off_value
    return not off, f"{rule.variable}={rule.off_value} puts cuDNN last"


def _patch(env: Environment, rule: CudnnFirst) -> _Condition:
    if rule.only_micro is None or env.micro == rule.only_micro:
        return True, ""
    return None, f"the patch number of torch {env.torch_name}"
