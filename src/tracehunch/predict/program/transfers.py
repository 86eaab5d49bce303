"""Copies between host and GPU, and casts on the way: what `aten::copy_` and `aten::_to_copy` run across them.

PyTorch converts on the host before a blocking copy to the GPU, on the GPU where the copy does not block; to
the host likewise, after it. Both sides are made contiguous first. Source: `copy_kernel_cuda` and
`copy_requires_temporaries` in ATen/native/cuda/Copy.cu.
"""

from dataclasses import replace
from typing import Final

from tracehunch.predict.ops.steps import Step, Steps, contiguous, copied, fresh, joined, memcpy, under
from tracehunch.predict.ops.tensor import Tensor
from tracehunch.predict.program.calls import OpCall

HOST: Final = "cpu"
ASIDE: Final = 65_536
"""Bytes up to which the driver copies pageable data aside and goes on."""

_COPIES: Final = ("aten::copy_", "aten::_to_copy", "aten::_copy_from", "aten::set_data")
_OP: Final = "aten::copy_"


def crosses(call: OpCall) -> bool:
    """Whether a call copies between host and GPU."""
    ends = _ends(call)
    return ends is not None and ends[1] != ends[3] and HOST in (ends[1], ends[3])


def direction(call: OpCall) -> str:
    """Return "htod" or "dtoh" of a call that crosses."""
    ends = _ends(call)
    return "htod" if ends is not None and ends[1] == HOST else "dtoh"


def moved_bytes(call: OpCall) -> int:
    """Return the bytes that a call moves between host and GPU, 0 for one that does not cross."""
    ends = _ends(call)
    return ends[2].numel * ends[0].itemsize if ends is not None and crosses(call) else 0


def transfer_steps(call: OpCall) -> Steps:
    """Return the launches of a copy that crosses."""
    ends = _ends(call)
    if ends is None:
        return ()
    source, _, target, _ = ends
    if target.numel == 0:
        return ()
    seen = source if source.shape == target.shape else source.expanded(target.shape)
    to_gpu = direction(call) == "htod"
    free = bool(call.options.get("non_blocking"))
    alike = seen.dtype == target.dtype and _same_order(seen, target) and seen.is_dense
    if alike:
        steps = memcpy("htod" if to_gpu else "dtoh", target.nbytes)
    else:
        steps = _up(seen, target, free=free) if to_gpu else _down(seen, target, free=free)
    return under(_OP, steps if is_pinned(call) else tuple(_through_driver(step) for step in steps))


def is_pinned(call: OpCall) -> bool:
    """Whether the host's side is known to be pinned memory; else it is taken for pageable."""
    return bool(call.options.get("pinned"))


def _through_driver(step: Step) -> Step:
    """Return a large copy as one from or to pageable memory, which the driver copies piece by piece."""
    if step.kind != "copy" or step.text == "dtod" or step.bytes <= ASIDE:
        return step
    return replace(step, family=f"{step.family}_pageable")


def _up(source: Tensor, target: Tensor, *, free: bool) -> Steps:
    """Convert on the host unless the copy is free to go on; what is not contiguous there is copied again."""
    landed = source.dtype if free else target.dtype
    middle = fresh(target.shape, landed)
    after = () if target.is_contiguous and landed == target.dtype else copied(middle, target)
    return joined([memcpy("htod", middle.nbytes), after])


def _down(source: Tensor, target: Tensor, *, free: bool) -> Steps:
    """Convert on the GPU where the copy is free to go on, else on the host after it."""
    if free and source.dtype != target.dtype:
        made = fresh(source.shape, target.dtype)
        return joined([copied(source, made), memcpy("dtoh", made.nbytes)])
    before, packed = contiguous(source)
    return joined([before, memcpy("dtoh", packed.nbytes)])


def _same_order(one: Tensor, other: Tensor) -> bool:
    pairs = zip(one.shape, one.strides, other.strides, strict=True)
    return all(first == second for size, first, second in pairs if size != 1)


def _ends(call: OpCall) -> tuple[Tensor, str, Tensor, str] | None:
    """Return source and target with their devices; None where the call is no copy."""
    if call.op not in _COPIES or not call.tensors:
        return None
    if call.op == "aten::copy_":
        if len(call.tensors) < 2 or len(call.devices) < 2:  # self, source
            return None
        return call.tensors[1], call.devices[1], call.tensors[0], call.devices[0]
    if not call.outputs or not call.output_devices:
        return None
    shape = call.outputs[0]
    return call.tensors[0], call.devices[0], replace(shape, offset=0), call.output_devices[0]
