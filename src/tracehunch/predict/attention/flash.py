"""The flash backend, FlashAttention 2 as PyTorch ships it: kernels forward and backward.

One forward kernel, or two where the keys are split over blocks (see `split_keys`). Head dimensions that are
no multiple of 8 are padded first: a fill and a copy for each of q, k and v.

The backward runs three kernels, and two sums where query heads share keys. It wants gradient and output
row-major as (batch, length, heads, head_dim), and copies what is not: so inputs made as (B, H, S, D) cost two
copies, and inputs made as (B, S, H, D) and transposed, as models have them, none.

Source: kernel names of H200 traces with torch 2.11; the tile table and the rule for splitting are those of
FlashAttention 2, whose kernels are built for sm_80 and run as such on later GPUs.
"""

from dataclasses import replace
from typing import Final

from tracehunch.predict.activities import KernelGuess
from tracehunch.predict.attention.fused import add_fused, dims_of
from tracehunch.predict.attention.masks import padded
from tracehunch.predict.attention.program import Program, UntoldError
from tracehunch.predict.attention.views import fresh, result_of, transposed
from tracehunch.predict.environment import Environment
from tracehunch.predict.ops.dtypes import dtype_word
from tracehunch.predict.roofline.split import STRIP, flash_splits, split_tile
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.tensor import TensorSpec

BUILT_FOR: Final = (32, 64, 96, 128, 192, 256)
"""Head dimensions that kernels are compiled for; others use the next larger one."""

_ALIGNMENT: Final = 8

_FORWARD_OP: Final = "aten::_flash_attention_forward"
_BACKWARD_OP: Final = "aten::_flash_attention_backward"

_BACKWARD_TILES: Final = {
    32: (128, 128),
    64: (128, 128),
    96: (64, 128),
    128: (64, 128),
    192: (64, 64),
    256: (64, 64),
}
"""Head dimension of the kernel -> queries and keys of a tile of the backward."""


def forward(program: Program, call: SdpaCall) -> TensorSpec:
    """Run the forward; return the output as (batch, heads, length, head_dim)."""
    q, k, v = (padded(program, t, _ALIGNMENT) for t in call.inputs)
    whole = replace(call, q=q, k=k, v=v)
    splits = split_keys(whole, program.env)
    kind, head_dim = dtype_word(q.dtype), built_for(q.shape[-1])
    program.empty(q.dtype, _FORWARD_OP)
    program.empty("float32", _FORWARD_OP, times=3 if splits > 1 else 1)
    program.empty("int64", _FORWARD_OP, times=3 if call.dropout > 0 else 2)
    if splits > 1:
        rows, columns = STRIP, split_tile(dims_of(whole))
        traits = f"Flash_fwd_kernel_traits<{head_dim}, {rows}, {columns}, "
        found = [
            _kernel(f"flash_fwd_splitkv_kernel<{traits}", "attention-split-kv", kind, _FORWARD_OP),
            _kernel(f"flash_fwd_splitkv_combine_kernel<{traits}", "attention-combine", kind, _FORWARD_OP),
        ]
    else:
        rows, columns = forward_tile(head_dim, call, program.env)
        traits = f"Flash_fwd_kernel_traits<{head_dim}, {rows}, {columns}, "
        found = [_kernel(f"flash_fwd_kernel<{traits}", "attention-forward", kind, _FORWARD_OP)]
    add_fused(program, "flash", whole, *found)
    out = transposed(result_of([transposed(q, 1, 2)], q.dtype), 1, 2)
    return replace(out, shape=call.q.shape)


def backward(program: Program, call: SdpaCall, gradient: TensorSpec) -> None:
    """Run the backward; `gradient` is the output's, (batch, heads, length, head_dim)."""
    q = call.q
    short = q.shape[-1] % _ALIGNMENT != 0
    if short:
        wide = -(-q.shape[-1] // _ALIGNMENT) * _ALIGNMENT
        zeros = program.filled((*q.shape[:-1], wide), q.dtype, "aten::slice_backward")
        program.copied(gradient, replace(zeros, shape=q.shape))
        gradient = zeros
        q = fresh(zeros.shape, q.dtype)
    out = result_of([transposed(q, 1, 2)], q.dtype)
    program.contiguous(transposed(gradient, 1, 2))
    program.contiguous(out)
    groups = call.q.shape[1] // call.k.shape[1]
    program.empty(q.dtype, _BACKWARD_OP, times=3)
    program.empty("float32", _BACKWARD_OP, times=3 if program.strict else 2)  # sums of dQ start as zeros
    program.empty(q.dtype, _BACKWARD_OP, times=2 if groups > 1 else 0)
    kind, head_dim = dtype_word(q.dtype), built_for(q.shape[-1])
    rows, columns = _BACKWARD_TILES[head_dim]
    traits = f"Flash_bwd_kernel_traits<{head_dim}, {rows}, {columns}, "
    found = (
        _kernel("flash_bwd_dot_do_o_kernel<", "attention-helper", kind, _BACKWARD_OP),
        _kernel(
            f"flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<{traits}", "attention-backward", kind, _BACKWARD_OP
        ),
        _kernel("flash_bwd_convert_dq_kernel<", "attention-helper", kind, _BACKWARD_OP),
    )
    add_fused(program, "flash", replace(call, q=q), *found, backward=True)
    if groups > 1:
        for t in (call.k, call.v):
            program.summed(fresh((t.shape[0], call.q.shape[1], *t.shape[2:]), t.dtype), t.numel)
    if short:
        for t in call.inputs:
            program.row_major(replace(fresh((*t.shape[:-1], q.shape[-1]), t.dtype), shape=t.shape))


def built_for(head_dim: int) -> int:
    """Return the head dimension of the kernel that runs one."""
    return next((size for size in BUILT_FOR if head_dim <= size), BUILT_FOR[-1])


def _kernel(hint: str, algorithm: str, kind: str, op: str) -> KernelGuess:
    helper = algorithm in ("attention-combine", "attention-helper")
    return KernelGuess(hint, "flash-attention", algorithm, "none" if helper else "tensor-core", kind, op)


def forward_tile(head_dim: int, call: SdpaCall, env: Environment) -> tuple[int, int]:
    """Return queries and keys of a tile, by FlashAttention 2's table; `head_dim` is one of `BUILT_FOR`."""
    dropout = call.dropout > 0
    small = env.compute_capability is not None and env.compute_capability in ((8, 6), (8, 9))
    if head_dim in (32, 64):
        return (128, 64) if dropout and head_dim == 64 else (128, 128)
    if head_dim in (96, 128):
        if small and call.is_causal and not dropout:
            return 64, 64
        return (128, 32) if head_dim == 128 and (small or dropout) else (128, 64)
    if head_dim == 192:
        return (64, 64) if dropout else (128, 64)
    ampere = env.compute_capability == (8, 0)  # much shared memory a block, little an SM
    return (128, 64) if ampere else (64, 64)


def split_keys(call: SdpaCall, env: Environment) -> int:
    """Return over how many blocks the keys are split; 1 is the ordinary kernel.

    Raises:
        UntoldError: it depends on the number of SMs, which is not known.

    """
    dims = dims_of(call)
    if call.dropout > 0 or dims.keys <= split_tile(dims):
        return 1
    if env.gpu is None:
        raise UntoldError("the number of SMs decides whether flash splits the keys")
    return flash_splits(dims, env.gpu.sms)
