"""What kind of event a category is, whatever the PyTorch version or vendor called it."""

from __future__ import annotations

from tracehunch.trace.model import Cat

_EXACT = {
    "cpu_op": Cat.CPU_OP,
    "operator": Cat.CPU_OP,  # PyTorch 1.8 to 1.11 capitalise: Operator, Kernel, Memcpy, Runtime
    "user_annotation": Cat.USER_ANNOTATION,
    "python_function": Cat.PYTHON_FUNCTION,
    "runtime": Cat.RUNTIME,
    "driver": Cat.DRIVER,
    "kernel": Cat.KERNEL,
    "concurrent_kernel": Cat.KERNEL,
    "hpu_op": Cat.KERNEL,
    "mtia_ccp_events": Cat.KERNEL,
    "gpu_memcpy": Cat.MEMCPY,
    "memcpy": Cat.MEMCPY,
    "gpu_memset": Cat.MEMSET,
    "memset": Cat.MEMSET,
    "gpu_user_annotation": Cat.GPU_ANNOTATION,
    "overhead": Cat.OVERHEAD,
    "trace": Cat.SPAN,
}
# cuda_runtime, hip_runtime, xpu_runtime, mtia_runtime, privateuse1_runtime ...
_SUFFIXES = (("_runtime", Cat.RUNTIME), ("_driver", Cat.DRIVER), ("_sync", Cat.SYNC))


def kind_of(category: str | None) -> Cat:
    """Tell the kind of a ``cat`` value; OTHER for what is not known."""
    if not category:
        return Cat.OTHER
    lowered = category.lower()
    if lowered in _EXACT:
        return _EXACT[lowered]
    return next((kind for suffix, kind in _SUFFIXES if lowered.endswith(suffix)), Cat.OTHER)
