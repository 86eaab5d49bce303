"""The cuDNN backend: kernels forward and backward.

On Hopper one forward kernel and a memset for its work counter; a boolean mask becomes additive first,
dropout unpacks its random state first. One query alone runs a kernel written for sm_80, without the memset;
where the keys are many and the (batch, key head) pairs leave half of the SMs idle, the keys are split and a
second kernel reduces the parts.

The backward on Hopper is a memset and three kernels, two sums more where query heads share keys, and a copy
of a gradient whose last stride is not 1. Which engine runs is cuDNN's own choice: of GPUs other than Hopper,
only what a name in a public trace has shown is claimed, and with less confidence.

Source: H200 traces and measurements with torch 2.11 and cuDNN 9.19.
"""

from typing import Final

from tracehunch.predict.activities import Activities, KernelGuess
from tracehunch.predict.attention.fused import add_fused
from tracehunch.predict.attention.masks import as_bias
from tracehunch.predict.attention.program import Program, UntoldError
from tracehunch.predict.attention.views import result_of
from tracehunch.predict.environment import Environment
from tracehunch.predict.roofline.steps import Step
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.tensor import TensorSpec

_FORWARD_OP: Final = "aten::_cudnn_attention_forward"
_BACKWARD_OP: Final = "aten::_cudnn_attention_backward"
_HOPPER: Final = (9, 0)
_FEW_KEYS: Final = 512
"""Keys up to which a decoding step was not seen to split them (at 1,000 it was)."""

_QUERY_TILE: Final = 16


def forward(program: Program, call: SdpaCall) -> TensorSpec:
    """Run the forward; return the output as (batch, heads, length, value_dim)."""
    if call.mask is not None:
        as_bias(program, call.mask, call.q.dtype)
    program.empty("int64", _FORWARD_OP, times=2)
    if call.dropout > 0:
        program.add(KernelGuess("philox::unpack_cudnn", "pytorch", "rng", op=_FORWARD_OP), step=Step("fill"))
    program.empty(call.q.dtype, _FORWARD_OP)
    program.empty("float32", _FORWARD_OP, times=int(call.requires_grad))
    one_query = call.q.shape[-2] == 1
    code = engine(program.env, one_query=one_query)
    _counter(program, code)
    found = [_kernel(f"cudnn_generated_fort_native_sdpa_{code}", "attention-forward", _FORWARD_OP)]
    if one_query and splits_keys(call, program.env):
        found.append(_helper("cudnn::fusion::lean_reduction_kernel", _FORWARD_OP))
    add_fused(program, "cudnn", call, *found)
    out = result_of([call.q], call.q.dtype)
    shape = (*call.q.shape[:-1], call.v.shape[-1])
    return out if shape == out.shape else _as_query(out, shape)


def backward(program: Program, call: SdpaCall, gradient: TensorSpec) -> None:
    """Run the backward; `gradient` is the output's, (batch, heads, length, value_dim)."""
    if gradient.stride[-1] != 1 and gradient.shape[-1] > 1:
        program.row_major(gradient)
    program.empty(call.q.dtype, _BACKWARD_OP, times=3)
    code = engine(program.env, one_query=False)
    _counter(program, code)
    found = [
        _helper("cudnn::fusion::compute_dot_do_o", _BACKWARD_OP),
        _kernel(f"cudnn_generated_fort_native_sdpa_{code}", "attention-backward", _BACKWARD_OP),
        _helper("cudnn::fusion::convert_dq_to_16bits", _BACKWARD_OP),
    ]
    if call.q.shape[1] != call.k.shape[1]:
        found += [_helper("cudnn::fusion::fmha_reduce_head", _BACKWARD_OP)] * 2
    add_fused(program, "cudnn", call, *found, backward=True)


def _counter(program: Program, code: str) -> None:
    """Note the memset of a work counter, which comes with Hopper's kernels."""
    if code == "sm90":
        program.memset()
    elif not code:
        why = "cuDNN's kernels for this GPU were not seen"
        program.note(Activities(memsets=None, reasons=(why,)))


def engine(env: Environment, *, one_query: bool) -> str:
    """Return the generation that the kernel's name carries, "" where it is not known."""
    if env.compute_capability is None:
        return ""
    major, _ = env.compute_capability
    if major == _HOPPER[0]:
        return "sm80" if one_query else "sm90"
    return "sm80" if major == 8 else ""  # Ampere and Ada


def splits_keys(call: SdpaCall, env: Environment) -> bool:
    """Whether a call with one query splits its keys.

    Raises:
        UntoldError: it depends on the number of SMs, which is not known.

    """
    if call.is_causal or call.k.shape[-2] <= _FEW_KEYS:
        return False
    if env.gpu is None:
        raise UntoldError("the number of SMs decides whether cuDNN splits the keys")
    batch, heads, _, _ = call.q.shape
    groups = heads // call.k.shape[1]
    work = batch * call.k.shape[1] * -(-groups // _QUERY_TILE)
    return 2 * work <= env.gpu.sms


def _kernel(hint: str, algorithm: str, op: str) -> KernelGuess:
    return KernelGuess(hint, "cudnn", algorithm, "tensor-core", None, op)


def _helper(hint: str, op: str) -> KernelGuess:
    return KernelGuess(hint, "cudnn", "attention-helper", op=op)


def _as_query(out: TensorSpec, shape: tuple[int, ...]) -> TensorSpec:
    """Return an output of other value dimension, its memory in the order of the query's."""
    return result_of([TensorSpec(shape, out.stride, out.dtype)], out.dtype)
