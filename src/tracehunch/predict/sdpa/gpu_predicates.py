"""Predicates on what the GPU and the libraries can do."""

from collections.abc import Mapping
from typing import Any, Final

from tracehunch.predict.environment import Environment
from tracehunch.predict.releases import releases
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.predicate import Answer, Predicate

_CAPABILITY: Final = "the GPU's compute capability"
_CUDNN: Final = "the version of cuDNN"
_ARCHITECTURE: Final = "the GPU's architecture"


def capability_between(_: SdpaCall, env: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether the compute capability is in a closed range.

    `least`, `most` and `sure` are [major, minor]. In versions of which only some rules are known the range
    may end anywhere beyond `sure`.
    """
    if env.compute_capability is None:
        return _CAPABILITY
    if env.compute_capability > numbers["sure"] and not releases()[env.torch].exact:
        return f"the GPUs that torch {env.torch_name} was built for"
    return bool(numbers["least"] <= env.compute_capability <= numbers["most"])


def large_head_dim_training(call: SdpaCall, env: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether a backward for this head dimension runs on the GPUs of `between`.

    It does up to `above`; head dimensions in (above, always] are refused, larger ones with dropout.
    """
    width = call.q.shape[-1]
    if not call.requires_grad or width <= numbers["above"]:
        return True
    if env.compute_capability is None:
        return _CAPABILITY
    if not any(low <= env.compute_capability <= high for low, high in numbers["between"]):
        return True
    return bool(width > numbers["always"] and call.dropout <= 0.0)


def dtype_among(call: SdpaCall, env: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether all inputs have one type, among `types`.

    Below compute capability `from` they are those of `older_types`. With FlashAttention 3 activated those of
    `fa3` come on top, from compute capability 9.0.
    """
    types = numbers["types"]
    name = call.q.dtype
    if not name == call.k.dtype == call.v.dtype:
        return False
    older = numbers.get("older_types")
    if older is not None and (name in types) != (name in older):
        if env.compute_capability is None:
            return _CAPABILITY
        types = types if env.compute_capability >= numbers["from"] else older
    if env.flash_version == "FA3" and name in numbers.get("fa3", ()):
        return _CAPABILITY if env.compute_capability is None else env.compute_capability >= (9, 0)
    return name in types


def efficient_alignment(call: SdpaCall, env: Environment) -> int | str:
    """Elements that mem-efficient loads at once: 16 bytes on GPUs with tensor cores for the type, else 1."""
    if env.compute_capability is None:
        return _CAPABILITY
    if call.q.dtype in ("float16", "bfloat16"):
        return 8 if env.compute_capability >= (7, 0) else 1
    return 4 if env.compute_capability >= (8, 0) else 1


def head_dims_aligned(call: SdpaCall, env: Environment, _: Mapping[str, Any]) -> Answer:
    """Tell whether both head dimensions are multiples of what mem-efficient loads at once."""
    unit = efficient_alignment(call, env)
    if isinstance(unit, str):
        return unit
    widths = (call.q.shape[-1], call.v.shape[-1])
    return all(width > 0 and width % unit == 0 for width in widths)


def offsets_aligned(call: SdpaCall, env: Environment, _: Mapping[str, Any]) -> Answer:
    """Tell whether the storage offsets of query, key and value are multiples of 16 bytes.

    Only GPUs from compute capability 8.0 need that.
    """
    if all(given.storage_offset == 0 for given in call.inputs):
        return True
    unit = efficient_alignment(call, env)
    if isinstance(unit, str):
        return unit
    if env.compute_capability is None or env.compute_capability < (8, 0):
        return True
    return all(given.storage_offset % unit == 0 for given in call.inputs)


def no_dropout_with_cudnn(call: SdpaCall, env: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether there is no dropout with cuDNN newer than `above` and older than `below`."""
    if call.dropout <= 0.0:
        return True
    if env.cudnn is None:
        return _CUDNN
    return not numbers["above"] < env.cudnn < numbers["below"]


def cudnn_head_dims(call: SdpaCall, env: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether head dimensions are within cuDNN's limits: `most`, and more as `wider` says.

    `wider` has entries [least, most capability, head dim, pair, cudnn]: on those GPUs, with cuDNN from that
    version, up to that head dim, or exactly the (d_qk, d_v) of `pair` where it is not empty.
    """
    widths = (call.q.shape[-1], call.v.shape[-1])
    if max(widths) <= numbers["most"]:
        return True
    fitting = [
        (low, high, cudnn)
        for low, high, most, pair, cudnn in numbers["wider"]
        if (widths == pair if pair else max(widths) <= most)
    ]
    if not fitting:
        return False
    if env.compute_capability is None:
        return _CAPABILITY
    versions = [cudnn for low, high, cudnn in fitting if low <= env.compute_capability <= high]
    if not versions:
        return False
    return _CUDNN if env.cudnn is None else bool(env.cudnn >= min(versions))


def cudnn_training_head_dims(call: SdpaCall, env: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether head dimensions that need a backward are at most `most` or a pair of `pairs`.

    Where head dims that large are taken at all: on GPUs of `on`, with cuDNN from `from_cudnn`.
    """
    widths = (call.q.shape[-1], call.v.shape[-1])
    if not call.requires_grad or max(widths) <= numbers["most"] or widths in numbers["pairs"]:
        return True
    if env.compute_capability is None:
        return _CAPABILITY
    if not any(low <= env.compute_capability <= high for low, high in numbers["on"]):
        return True
    return _CUDNN if env.cudnn is None else bool(env.cudnn < numbers["from_cudnn"])


def rocm_head_dim(call: SdpaCall, env: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether the head dimension is within AOTriton's limit.

    That is `most`, or `sure` with some versions of AOTriton: on GPUs of `small`, and before `surely_from`.
    """
    width = call.q.shape[-1]
    if width <= numbers["sure"] or width > numbers["most"]:
        return bool(width <= numbers["sure"])
    if env.architecture is None:
        return _ARCHITECTURE
    small = any(env.architecture.startswith(name) for name in numbers["small"])
    return "the version of AOTriton" if small or env.torch < numbers["surely_from"] else True


def rocm_architecture(_: SdpaCall, env: Environment, numbers: Mapping[str, Any]) -> Answer:
    """Tell whether the GPU's architecture is `known` to have kernels.

    Where Composable Kernel is preferred, PyTorch does not look.
    """
    if env.env.get(numbers["prefer_ck"]) == "1" or env.architecture in numbers["known"]:
        return True
    return _ARCHITECTURE if env.architecture is None else f"whether {env.architecture} has kernels"


def rocm_efficient_head_dims(call: SdpaCall, _: Environment, __: Mapping[str, Any]) -> Answer:
    """Tell whether head dimensions are equal multiples of 8, at most 256.

    Newer versions of AOTriton take others too.
    """
    q, k, v = (given.shape[-1] for given in call.inputs)
    if q == k == v and q % 8 == 0 and 0 < q <= 256:  # AOTriton's limit before 0.12
        return True
    unit = 8 if call.q.dtype in ("float16", "bfloat16") else 4
    never_fits = q != k or q % unit or v % unit or not 0 < max(q, v) <= 512  # and since
    return False if never_fits else "the version of AOTriton"


GPU_PREDICATES: Final[Mapping[str, Predicate]] = {
    "capability-between": capability_between,
    "large-head-dim-training": large_head_dim_training,
    "dtype-among": dtype_among,
    "head-dims-aligned": head_dims_aligned,
    "offsets-aligned": offsets_aligned,
    "no-dropout-with-cudnn": no_dropout_with_cudnn,
    "cudnn-head-dims": cudnn_head_dims,
    "cudnn-training-head-dims": cudnn_training_head_dims,
    "rocm-head-dim": rocm_head_dim,
    "rocm-architecture": rocm_architecture,
    "rocm-efficient-head-dims": rocm_efficient_head_dims,
}
"""Predicates by the name that tables use."""
