"""Operations that are made of others on the CPU and are one on a GPU, or the other way round.

What PyTorch composes an operation of depends on where its tensors are and on how it was built. While a
program is recorded these follow CUDA builds, whatever build records. Sources: the C++ functions of the same
names in ATen/native (Dropout.cpp, Normalization.cpp, SoftMax.cpp, RNN.cpp, layer_norm.cpp).
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.program.fast_path import fast_path
from tracehunch.capture.program.recurrent import recurrent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.predict.environment import Environment

_GPU: Final = ("AutogradCUDA", "CUDA")

KERNELS: Final = ("silu_backward", "mish_backward", "_fused_rms_norm")
"""Operations that a CUDA build has kernels for and others compose; the rest have one in every build."""


@contextmanager
def composites(torch: Any, env: Environment, instead: dict[str, Any]) -> Iterator[None]:
    """Let operations on tensors of the GPU be composed as CUDA builds do, and as `instead` says, by name.

    What is done instead of an operation is put into `instead`: in inference mode the recording meets
    operations whole, before these are asked.
    """
    instead.update({**_replacements(torch), **fast_path(torch, env)})
    library = torch.library.Library("aten", "IMPL")
    try:
        for name in KERNELS:
            if not torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", "CUDA"):  # noqa: SLF001  # torch has no public way
                library.impl(name, _never, "CUDA")
        for name, made in instead.items():
            for key in _GPU:
                library.impl(name, made, key)
        yield
    finally:
        library._destroy()  # noqa: SLF001  # nothing else undoes a registration


def _never(*_: Any, **__: Any) -> Any:
    raise AssertionError("there is no GPU to run on")


def _replacements(torch: Any) -> dict[str, Any]:
    aten = torch.ops.aten
    return {
        "dropout": _dropout(aten),
        "softmax.int": _softmax(torch, aten._softmax),  # noqa: SLF001  # an operator's name
        "log_softmax.int": _softmax(torch, aten._log_softmax),  # noqa: SLF001  # an operator's name
        "_batch_norm_impl_index": _batch_norm(torch),
        "rms_norm": _rms_norm(torch),
        "one_hot": _one_hot(aten),
        **recurrent(torch),
        "lstm_cell": _lstm_cell(aten),
        "gru_cell": _gru_cell(aten),
    }


def _dropout(aten: Any) -> Any:
    def dropout(input: Any, p: float, train: bool) -> Any:  # noqa: A002  # the schema's name
        if train and 0 < p < 1 and input.numel() > 0:
            return aten.native_dropout.default(input, p, train)[0]
        if p == 0 or not train or input.numel() == 0:
            return input
        return aten.mul.Tensor(input, aten.zeros.default([], device=input.device, dtype=input.dtype))

    return dropout


def _softmax(torch: Any, kernel: Any) -> Any:
    """One kernel widens half to float on the way; any other data type is converted before it."""

    def softmax(input: Any, dim: int, dtype: Any = None) -> Any:  # noqa: A002  # the schema's name
        if input.dtype == torch.float16 and dtype == torch.float32:
            return kernel.default(input, dim, True)  # noqa: FBT003  # half_to_float
        return kernel.default(input if dtype is None else input.to(dtype), dim, False)  # noqa: FBT003  # as above

    return softmax


def _batch_norm(torch: Any) -> Any:
    aten = torch.ops.aten

    def by_cudnn(x: Any, weight: Any, bias: Any, mean: Any, training: bool) -> bool:
        if weight is None or bias is None or not torch.backends.cudnn.enabled:
            return False
        known = mean is not None or training
        most = 880_801 if training else 65_535
        widths = (x.dtype != torch.float16 or weight.dtype == torch.float32) and (
            torch.bfloat16 not in (x.dtype, weight.dtype)
        )
        return known and widths and x.dim() >= 3 and x.shape[0] <= most

    def batch_norm(  # noqa: PLR0917  # as the schema has them
        x: Any,
        weight: Any,
        bias: Any,
        mean: Any,
        var: Any,
        training: bool,
        momentum: float,
        eps: float,
        _on: bool,
    ) -> Any:
        if by_cudnn(x, weight, bias, mean, training) and eps >= 1e-5:
            x = x.contiguous(memory_format=torch._prims_common.suggest_memory_format(x))  # noqa: SLF001  # torch has no public way
            made = aten.cudnn_batch_norm.default(x, weight, bias, mean, var, training, momentum, eps)
            return (*made, 1)
        made = aten.native_batch_norm.default(x, weight, bias, mean, var, training, momentum, eps)
        return (*made, torch.empty(0, dtype=torch.uint8, device=x.device), 0)

    return batch_norm


def _rms_norm(torch: Any) -> Any:
    """One kernel, but for data types that differ and channels that come last."""
    aten = torch.ops.aten

    def composed(x: Any, shape: list[int], weight: Any, eps: float) -> Any:
        wide = x.to(torch.float32) if x.dtype in (torch.float16, torch.bfloat16) else x
        mean = wide.pow(2).mean(list(range(-len(shape), 0)), keepdim=True)
        made = wide.mul(mean.add_(eps).rsqrt())
        return (made if weight is None else made.mul(weight)).to(x.dtype)

    def rms_norm(
        input: Any,  # noqa: A002  # its name
        normalized_shape: list[int],
        weight: Any = None,
        eps: float | None = None,
    ) -> Any:
        last = torch._prims_common.suggest_memory_format(input)  # noqa: SLF001  # as the C++ function asks
        mixed = weight is not None and weight.dtype != input.dtype
        if mixed or last != torch.contiguous_format:
            least = torch.finfo(input.dtype).eps if eps is None else eps
            return composed(input, normalized_shape, weight, least)
        return aten._fused_rms_norm.default(input, normalized_shape, weight, eps)[0]  # noqa: SLF001  # a name

    return rms_norm


def _one_hot(aten: Any) -> Any:
    """Write ones into zeros, unchecked, as on a GPU; for tensors without data others are compared."""

    def one_hot(self: Any, num_classes: int = -1) -> Any:
        classes = num_classes if num_classes != -1 else self.max().item() + 1
        made = aten.zeros.default([*self.shape, classes], dtype=self.dtype, device=self.device)
        return aten.scatter_.value(made, -1, self.unsqueeze(-1), 1) if self.numel() else made

    return one_hot


def _lstm_cell(aten: Any) -> Any:
    def lstm_cell(  # noqa: PLR0917  # as the schema has them
        input: Any,  # noqa: A002  # its name
        hx: Any,
        w_ih: Any,
        w_hh: Any,
        b_ih: Any = None,
        b_hh: Any = None,
    ) -> Any:
        gates = aten.matmul.default(input, w_ih.t()), aten.matmul.default(hx[0], w_hh.t())
        return aten._thnn_fused_lstm_cell.default(*gates, hx[1], b_ih, b_hh)[:2]  # noqa: SLF001  # a name

    return lstm_cell


def _gru_cell(aten: Any) -> Any:
    def gru_cell(  # noqa: PLR0917  # as the schema has them
        input: Any,  # noqa: A002  # its name
        hx: Any,
        w_ih: Any,
        w_hh: Any,
        b_ih: Any = None,
        b_hh: Any = None,
    ) -> Any:
        gates = aten.matmul.default(input, w_ih.t()), aten.matmul.default(hx, w_hh.t())
        return aten._thnn_fused_gru_cell.default(*gates, hx, b_ih, b_hh)[0]  # noqa: SLF001  # a name

    return gru_cell
