"""The kernels of a fused backend as the model of time sees them: one step, whatever their number."""

from typing import Final

from tracehunch.predict.activities import KernelGuess
from tracehunch.predict.attention.program import Program
from tracehunch.predict.ops.dtypes import dtype_word, size_of
from tracehunch.predict.roofline.dims import AttentionDims, Case
from tracehunch.predict.roofline.steps import Step
from tracehunch.predict.roofline.work import attention_work
from tracehunch.predict.sdpa.call import SdpaCall

_ALIGNED: Final = 16  # bytes


def add_fused(
    program: Program, backend: str, call: SdpaCall, *found: KernelGuess, backward: bool = False
) -> None:
    """Note a fused backend's own kernels for a call whose inputs are padded already.

    FLOPs (causal: of the pairs that the mask leaves) and least bytes are those of the call.
    """
    dims, word = dims_of(call), dtype_word(call.q.dtype)
    training = call.requires_grad and not backward
    work = attention_work(
        dims, word, call.is_causal, backward=backward, training=training, lower_right=call.lower_right
    )
    mask = _mask_bytes(call)
    # the efficient backend pads rows, the others take them as they are
    ragged = mask > 0 and backend != "efficient" and dims.keys * size_of(word) % _ALIGNED != 0
    case = Case(
        backend, dims, word, call.is_causal, backward, mask, ragged, dropout=call.dropout > 0,
        lower_right=call.lower_right,
    )  # fmt: skip
    program.fused(*found, step=Step("fused", work.least_bytes, fused=case), flops=work.flops)


def dims_of(call: SdpaCall) -> AttentionDims:
    """Return the sizes of a call of four-dimensional tensors."""
    batch, heads, queries, head_dim = call.q.shape
    _, kv_heads, keys, _ = call.k.shape
    return AttentionDims(batch, heads, queries, keys, head_dim, kv_heads, call.v.shape[3])


def _mask_bytes(call: SdpaCall) -> int:
    """Bytes of the additive mask that the kernel reads, those that are repeated once."""
    if call.mask is None:
        return 0
    distinct = 1
    for size, stride in zip(call.mask.shape, call.mask.stride, strict=True):
        distinct *= size if stride != 0 else 1
    return distinct * size_of(dtype_word(call.q.dtype))
