"""The errors that calls of SDPA end in: PyTorch's own words, as far as they are known."""

from typing import Final

from tracehunch.predict.environment import Backend, Environment
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.gpu_predicates import efficient_alignment
from tracehunch.predict.sdpa.math_errors import math_error
from tracehunch.predict.sdpa.prediction import Choice
from tracehunch.predict.sdpa.shapes import Misfit, expand

NO_KERNEL: Final = "No available kernel. Aborting execution."
NO_KERNEL_CPU: Final = "No available kernel.  Aborting execution."
NO_BACKEND: Final = (
    "No viable backend for scaled_dot_product_attention was found. "
    "This is likely due to turning off both the math kernel and the fused kernels."
)
INVALID_BACKEND: Final = "Invalid backend"
BIAS_DTYPE: Final = "invalid dtype for bias - should match query's dtype"
BIAS_LAST_DIM: Final = "(*bias): last dimension must be contiguous"
NO_CUTLASS_KERNEL: Final = "cutlassF: no kernel found to launch!"
CPU_DROPOUT: Final = "scaled_dot_product_attention_flash_attention: Currently do not support dropout > 0"
CUDNN_OUTPUT_STRIDE: Final = (
    "cuDNN Frontend error: The stride for the last dimension corresponding to the embedding size per head "
    "should be 1 for output_names::O"
)

_C_NAMES: Final = {
    "bool": "bool",
    "uint8": "unsigned char",
    "int8": "signed char",
    "int16": "short int",
    "int32": "int",
    "int64": "long int",
    "float8_e4m3fn": "c10::Float8_e4m3fn",
    "float8_e5m2": "c10::Float8_e5m2",
    "bfloat16": "c10::BFloat16",
    "float16": "c10::Half",
    "float32": "float",
    "float64": "double",
}
_TENSOR_NAMES: Final = {
    "bfloat16": "BFloat16",
    "float16": "Half",
    "float32": "Float",
    "float64": "Double",
}
_MAJORS: Final = {"FA3": (9,), "FA4": (9, 10)}  # compute capabilities of newer FlashAttentions
_ROW: Final = 2  # dimensions of a matrix
_CUTLASS_121: Final = (2, 12)


def input_error(call: SdpaCall) -> str | None:
    """Return the error that the call's inputs meet before any backend is asked, None for none."""
    q, k, v = (_C_NAMES[given.dtype] for given in call.inputs)
    if not q == k == v:
        return (
            "Expected query, key, and value to have the same dtype, but got "
            f"query.dtype: {q} key.dtype: {k} and value.dtype: {v} instead."
        )
    dims = [len(given.shape) for given in call.inputs]
    if min(dims) < _ROW:
        return (
            "Expected query, key, and value to all be  at least 2 dimensional, but got "
            f"query.dim: {dims[0]} key.dim: {dims[1]} and value.dim: {dims[2]} instead."
        )
    mask = call.mask
    if mask is not None and mask.dtype not in ("bool", "float32", call.q.dtype):
        return (
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got "
            f"attn_mask.dtype: {_C_NAMES[mask.dtype]} and  query.dtype: {q} instead."
        )
    return None


def is_empty(call: SdpaCall) -> bool:
    """Whether there is no query or no value: such a call asks no backend, and returns zeros."""
    return call.v.numel == 0 or call.q.shape[-2] == 0


def flat_mask_error(call: SdpaCall) -> str:
    """Return the error of a backend that looks at the rows of a mask with less than 2 dimensions."""
    if call.mask is not None and call.mask.shape:
        return "Dimension out of range (expected to be in range of [-1, 0], but got -2)"
    return "Dimension specified as -2 but tensor has no dimensions"


def choice_error(env: Environment) -> str:
    """Return the error where every backend refuses."""
    asked: tuple[Backend, ...] = ("math", "flash")
    if env.device != "cpu":
        asked = (*asked, "efficient", "cudnn")
    if not any(env.is_enabled(backend) for backend in asked):
        return NO_BACKEND
    return NO_KERNEL_CPU if env.device == "cpu" else NO_KERNEL


def backend_error(call: SdpaCall, env: Environment, chosen: Choice) -> str | None:
    """Return the error that the chosen backend's forward ends in, None for none."""
    if chosen == "error":
        return choice_error(env)
    if chosen == "overrideable":
        return INVALID_BACKEND if env.device == "cuda" else None
    if chosen == "math":
        return math_error(call)
    if chosen == "efficient":
        return _efficient(call, env)
    if chosen == "cudnn":
        return _cudnn(call)
    return _cpu_flash(call) if env.device == "cpu" else _newer_flash(call, env)


def _cpu_flash(call: SdpaCall) -> str | None:
    if call.dropout < 0.0:
        return CPU_DROPOUT
    if call.mask is None:
        return None
    mask = (1,) * (4 - len(call.mask.shape)) + call.mask.shape
    misfit = expand(mask, (*mask[:2], call.q.shape[2], call.v.shape[2]), "")
    return None if misfit is None else misfit.error


def _newer_flash(call: SdpaCall, env: Environment) -> str | None:
    """FlashAttention 3 and 4, activated by hand, raise where they do not take a call."""
    majors = _MAJORS.get(env.flash_version)
    if majors is None or env.compute_capability is None:
        return None
    said = f"{env.flash_version} SDPA forward unsupported"
    if call.dropout != 0.0:
        return f"{said}: dropout_p must be 0"
    if env.compute_capability[0] not in majors:
        return (
            f"{said}: {env.flash_version} requires compute capability {' or '.join(f'{m}.0' for m in majors)}"
        )
    return None


def _efficient(call: SdpaCall, env: Environment) -> str | None:
    mask = call.mask
    if mask is not None:
        target = (*call.q.shape[:3], call.k.shape[2])
        dtype = call.q.dtype if mask.dtype == "bool" else mask.dtype
        misfit = expand(mask.shape, target, f"torch.cuda.{_TENSOR_NAMES[dtype]}Tensor")
        if isinstance(misfit, Misfit):
            return misfit.error
        if mask.shape[-1:] == (1,) != target[-1:]:
            return BIAS_LAST_DIM  # expanded: stride 0
        if dtype != call.q.dtype:
            return BIAS_DTYPE
    # the kernels compiled up to 2.11 end at 12.0, its check at 12.1
    if env.compute_capability == (12, 1) and env.device == "cuda" and env.torch < _CUTLASS_121:
        return NO_CUTLASS_KERNEL
    return _unaligned(call, env) if env.device == "cuda" else None


def _unaligned(call: SdpaCall, env: Environment) -> str | None:
    """Mem-efficient's kernel looks at pointers, in bytes, and at the strides between rows, in elements."""
    unit = efficient_alignment(call, env)
    if isinstance(unit, str) or env.compute_capability is None or env.compute_capability < (8, 0):
        return None
    for name, given in zip(("query", "key", "value"), call.inputs, strict=True):
        if given.storage_offset * given.item_bytes % unit:
            return f"p.{name}_ptr is not correctly aligned"
    for name, given in (("query", call.q), ("key", call.k)):
        if given.stride[2] % unit:
            return f"{name} is not correctly aligned (strideM)"
    return None


def _cudnn(call: SdpaCall) -> str | None:
    """Tell whether cuDNN gets a result whose last dimension is not contiguous.

    A result with another head dim than the query's is laid out in the order of the query's strides, and an
    expanded dimension, of stride 0, comes out innermost.
    """
    query = call.q
    if call.v.shape[-1] == query.shape[-1]:
        return None
    *outer, last = query.stride
    inner = [size for size, stride in zip(query.shape, outer, strict=False) if stride <= last]
    return CUDNN_OUTPUT_STRIDE if any(size > 1 for size in inner) else None
