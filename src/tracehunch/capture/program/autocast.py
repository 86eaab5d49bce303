"""Autocast on a GPU that is not there: which operations it casts, to what, and what it remembers.

PyTorch's own casts ask in C++ whether a tensor is on the GPU, and hear no (see `world`). The operations and
their policies are those of ATen/autocast_mode.h, the same from torch 2.6 to 2.13.
"""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LOWER: Final = (
    "_convolution", "_convolution.deprecated", "conv1d", "conv2d", "conv3d", "conv_tbc", "conv_transpose1d",
    "conv_transpose2d.input", "conv_transpose3d.input", "convolution", "prelu", "addmm", "addmv", "addr",
    "matmul", "einsum", "mm", "mv", "linalg_vecdot", "linear", "addbmm", "baddbmm", "bmm", "chain_matmul",
    "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell", "gru_cell",
    "rnn_tanh_cell", "rnn_relu_cell", "_scaled_dot_product_flash_attention", "scaled_dot_product_attention",
    "cudnn_convolution", "cudnn_convolution_transpose",
)  # fmt: skip
"""Run in the data type that autocast was given."""

FULL: Final = (
    "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p", "reciprocal", "rsqrt",
    "sinh", "tan", "pow.Tensor_Scalar", "pow.Tensor_Tensor", "pow.Scalar", "softplus", "layer_norm",
    "native_layer_norm", "rms_norm", "group_norm", "frobenius_norm.dim", "nuclear_norm", "nuclear_norm.dim",
    "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss", "nll_loss2d",
    "hinge_embedding_loss", "kl_div", "l1_loss", "smooth_l1_loss", "huber_loss", "mse_loss",
    "margin_ranking_loss", "multilabel_margin_loss", "soft_margin_loss", "triplet_margin_loss",
    "multi_margin_loss", "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp",
    "upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_nearest2d", "_upsample_nearest_exact2d",
    "upsample_nearest3d", "_upsample_nearest_exact3d", "upsample_linear1d", "upsample_bilinear2d",
    "_upsample_bilinear2d_aa", "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bicubic2d_aa",
)  # fmt: skip
"""Run in float32."""

OUTPUT: Final = (
    "prod", "prod.dim_int", "softmax.int", "log_softmax.int", "cumprod", "cumsum", "linalg_vector_norm",
    "linalg_matrix_norm", "linalg_matrix_norm.str_ord", "sum", "sum.dim_IntList", "norm.Scalar",
    "norm.ScalarOpt_dim",
)  # fmt: skip
"""Are asked for a float32 result where the program asks for no data type."""

WIDEST: Final = (
    "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler", "index_put",
    "tensordot", "scatter_add",
)  # fmt: skip
"""Run in the widest data type among their tensors."""

_REDISPATCHED: Final = {
    "norm.Scalar": "norm.ScalarOpt_dtype",
    "norm.ScalarOpt_dim": "norm.ScalarOpt_dim_dtype",
}

ENABLED: Final[ContextVar[bool]] = ContextVar("ENABLED", default=False)
"""Whether the program is in a block of autocast; torch itself says no below it."""


@contextmanager
def autocast(torch: Any) -> Iterator[None]:
    """Cast arguments of the operations on the GPU as `torch.autocast("cuda")` says."""
    casts = _Casts(torch)
    forgotten, enabled = torch.clear_autocast_cache, torch.set_autocast_enabled

    def enable(*args: Any) -> None:
        if args[0] in (True, False, "cuda"):
            ENABLED.set(bool(args[-1]))
        enabled(*args)

    def forget() -> None:
        casts.remembered.clear()
        forgotten()

    library = _kernels(torch, casts)
    try:
        with (
            patch.object(torch, "clear_autocast_cache", forget),
            patch.object(torch, "set_autocast_enabled", enable),
        ):
            yield
    finally:
        library._destroy()  # noqa: SLF001  # nothing else undoes a registration


def _kernels(torch: Any, casts: _Casts) -> Any:
    library = torch.library.Library("aten", "IMPL")
    policies = ((LOWER, casts.lower), (FULL, casts.full), (WIDEST, casts.widest), (OUTPUT, casts.output))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that kernels are replaced is meant
        for names, policy in policies:
            for name in names:
                _register(torch, library, name, policy)
    return library


def _register(torch: Any, library: Any, name: str, policy: Callable[..., Any]) -> None:
    plain, _, overload = name.partition(".")
    packet = getattr(torch.ops.aten, plain, None)
    if packet is None or (overload or "default") not in packet.overloads():
        return  # not in this version
    operator = getattr(packet, overload or "default")
    excluded = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCUDA)  # noqa: SLF001  # as torch.library does

    def kernel(*args: Any, **kwargs: Any) -> Any:
        enabled = torch.is_autocast_enabled("cuda")  # not always: a compiler asks about all that it traces
        with torch._C._ExcludeDispatchKeyGuard(excluded):  # noqa: SLF001  # as torch.library does
            if not enabled:
                return operator(*args, **kwargs)
            return policy(operator, args, kwargs)

    library.impl(name, kernel, "AutocastCUDA")


class _Casts:
    """The policies. `remembered`: casts of parameters, kept until the outermost block ends."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self.remembered: dict[int, tuple[Any, Any]] = {}

    def lower(self, operator: Any, args: Any, kwargs: Any) -> Any:
        return self._called(operator, args, kwargs, self._torch.get_autocast_dtype("cuda"))

    def full(self, operator: Any, args: Any, kwargs: Any) -> Any:
        return self._called(operator, args, kwargs, self._torch.float32)

    def widest(self, operator: Any, args: Any, kwargs: Any) -> Any:
        found = {one.dtype for one in self._eligible([*args, *kwargs.values()])}
        dtype = (
            self._torch.float32 if self._torch.float32 in found else self._torch.get_autocast_dtype("cuda")
        )
        return self._called(operator, args, kwargs, dtype)

    def output(self, operator: Any, args: Any, kwargs: Any) -> Any:
        if not self._eligible(args[:1]):
            return operator(*args, **kwargs)
        name = operator._schema.name.removeprefix("aten::")  # noqa: SLF001  # torch has no public schema
        other = _REDISPATCHED.get(f"{name}.{operator._overloadname}")  # noqa: SLF001  # as above
        if other is not None:
            return self._norm(other, args, kwargs)
        names = [one.name for one in operator._schema.arguments]  # noqa: SLF001  # as above
        given = dict(zip(names, args, strict=False)) | kwargs
        if given.get("dtype") is None:
            given["dtype"] = self._torch.float32
        return operator(**given)

    def _called(self, operator: Any, args: Any, kwargs: Any, dtype: Any) -> Any:
        cast_kwargs = self._cast(kwargs, dtype)
        last_first = [self._cast(one, dtype) for one in reversed(args)]  # as C++ compilers take arguments
        return operator(*reversed(last_first), **cast_kwargs)

    def _norm(self, other: str, args: Any, kwargs: Any) -> Any:
        plain, overload = other.split(".")
        operator = getattr(getattr(self._torch.ops.aten, plain), overload)
        names = [one.name for one in operator._schema.arguments]  # noqa: SLF001  # torch has no public schema
        given = {"p": 2, "dim": [], "keepdim": False} | dict(zip(names, args, strict=False)) | kwargs
        return operator(**{name: given[name] for name in names if name in given}, dtype=self._torch.float32)

    def _eligible(self, values: Any) -> list[Any]:
        found = []
        for value in values:
            if isinstance(value, (list, tuple)):
                found += self._eligible(value)
            elif self._torch.is_tensor(value) and value.is_cuda and value.is_floating_point():
                found.append(value)
        return [one for one in found if one.dtype != self._torch.float64]

    def _cast(self, value: Any, dtype: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return type(value)([self._cast(one, dtype) for one in value])
        if isinstance(value, dict):
            return {name: self._cast(one, dtype) for name, one in value.items()}
        if not self._torch.is_tensor(value) or not self._eligible([value]) or value.dtype == dtype:
            return value
        if not self._is_kept(value, dtype):
            return value.to(dtype)
        if id(value) not in self.remembered:
            self.remembered[id(value)] = (value, value.to(dtype))
        return self.remembered[id(value)][1]

    def _is_kept(self, value: Any, dtype: Any) -> bool:
        """Whether a cast is remembered: that of a float32 parameter to the lower data type."""
        torch = self._torch
        parameter = value.is_leaf and value.requires_grad and not value._is_view()  # noqa: SLF001  # no public name
        full = value.dtype == torch.float32 and dtype == torch.get_autocast_dtype("cuda")
        return bool(parameter and full and torch.is_autocast_cache_enabled())
