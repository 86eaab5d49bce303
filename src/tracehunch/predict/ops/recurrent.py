"""Recurrent layers, as cuDNN runs them: kernels of each step, or one that stays on the GPU for all of them.

Which of the two cuDNN takes was only looked at from outside, for 429 layers of random sizes on an H200: small
hidden sizes in fp32 and fp16 run persistent kernels, bf16 and hidden sizes from 256 on mostly two kernels
a step.
"""

from typing import Final

from tracehunch.predict.ops.dtypes import HALF
from tracehunch.predict.ops.gemm import Product
from tracehunch.predict.ops.reductions import reduction
from tracehunch.predict.ops.steps import (
    Call,
    Step,
    Steps,
    copied,
    fresh,
    joined,
    kernel,
    memset,
    under,
    unknown,
)

_GATES: Final = (1, 1, 4, 3)
"""By ATen's number of the mode: RNN with ReLU, with tanh, LSTM, GRU."""
_STEPWISE_FROM: Final = 256
_SET_UP_NS: Final = 1200
_AROUND: Final = 3
"""Kernels of a layer and direction besides those of its steps."""
_AROUND_BACK: Final = 8
_MEMSETS: Final = 4


def recurrent(call: Call) -> Steps:
    """Run all layers forward."""
    return _layers(call, _AROUND)


def recurrent_backward(call: Call) -> Steps:
    """Run all layers backward, and add up the gradients of the weights."""
    return _layers(call, _AROUND_BACK)


def _layers(call: Call, around: int) -> Steps:
    one = call.first
    hidden, mode = int(call.option("hidden_size", 0)), int(call.option("mode", -1))
    if len(one.shape) != 3 or not hidden or not 0 <= mode < len(_GATES):  # sequence, batch, features
        return unknown("the sizes of the recurrent layer were not recorded")
    batch_first = bool(call.option("batch_first"))
    length, batch = (one.size(1), one.size(0)) if batch_first else (one.size(0), one.size(1))
    directions = int(call.option("num_layers", 1)) * (1 + bool(call.option("bidirectional")))
    turned = (
        copied(one.transposed(0, 1), fresh((length, batch, one.size(2)), one.dtype)) if batch_first else ()
    )
    stepwise = one.dtype == "bf16" or hidden >= _STEPWISE_FROM
    dtype = one.dtype if one.dtype in HALF else "bf16"  # float32 as TF32, which cuDNN is allowed
    product = Product(
        m=batch, n=_GATES[mode] * hidden, k=hidden, batch=1, dtype=dtype, turned_a=False, turned_b=True,
        alignment=64, route="cublas",
    )  # fmt: skip
    cell = kernel("elemWiseRNNcell", "rnn", "tiny", 0, dtype=one.dtype, library="cudnn")
    run: Steps
    if stepwise:
        multiply = (Step("grouped", "", "gemm", items=_SET_UP_NS, product=product, library="cudnn"),)
        run = joined([multiply, cell] * length)
    else:
        moved = length * batch * _GATES[mode] * hidden * one.itemsize
        run = kernel(
            "persist", "rnn", "rnn_persistent", moved, dtype=one.dtype, serial=length * (hidden + 64),
            library="cudnn",
        )  # fmt: skip
    rest = [kernel("", "gemm", "tiny", 0, dtype=one.dtype, library="cudnn")] * (around - (not stepwise))
    cleared = [memset()] * (_MEMSETS if one.dtype == "bf16" else 0)
    return joined([turned, *[joined([*cleared, *rest, run])] * directions])


def cell_backward(call: Call) -> Steps:
    """Derive a cell with one kernel, and add up the gradient of its gates over the rows for each bias.

    Source: `_thnn_fused_lstm_cell_backward_impl_cuda` in ATen/native/cuda/RNN.cu.
    """
    gates, *others = call.outputs
    moved = sum(one.nbytes for one in (*call.tensors, gates))
    run = kernel("", "elementwise", "strided", moved, dtype=gates.dtype, items=gates.numel)
    sums = [under("aten::sum", reduction(gates, (0,), call.sms)) for one in others if len(one.shape) == 1]
    return joined([run, *sums])
