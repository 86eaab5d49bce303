"""What a trace recorded of the inputs of one SDPA call, and which of them keep fused kernels away."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tracehunch.trace.model import Int64, Trace

HALF: Final = {"c10::BFloat16": "bfloat16", "c10::Half": "float16", "BFloat16": "bfloat16", "Half": "float16"}
_BYTES: Final = {"double": 8, "float": 4}
_DIMENSIONS: Final = 4
_FLASH_HEAD_DIM: Final = 256


@dataclass(frozen=True, slots=True)
class SdpaInputs:
    """Shapes (batch, heads, length, head dimension), types and strides of query, key and value."""

    q: tuple[int, ...]
    k: tuple[int, ...]
    v: tuple[int, ...]
    types: tuple[str, str, str]
    strides: tuple[tuple[int, ...], ...]  # empty where not recorded
    mask: tuple[int, ...]  # empty: none was passed
    causal: bool | None  # None where not recorded
    gqa: bool | None
    dropout: bool = False
    on_gpu: bool = True

    @property
    def half(self) -> bool:
        """Whether the query is float16 or bfloat16."""
        return self.types[0] in HALF

    @property
    def element_bytes(self) -> int:
        """Bytes of one element of the query."""
        return 2 if self.half else _BYTES.get(self.types[0], 4)

    @property
    def flops(self) -> int:
        """Multiplications and additions of both matrix products over the pairs that a fused kernel visits."""
        *batch, length, d_qk = self.q
        keys, d_v = self.k[-2], self.v[-1]
        pairs = length * keys
        if self.causal:
            pairs = (
                length * (length + 1) // 2
                if length <= keys
                else keys * (keys + 1) // 2 + (length - keys) * keys
            )
        return 2 * _product(batch) * pairs * (d_qk + d_v)

    @property
    def min_bytes(self) -> int:
        """Bytes that any kernel has to move: query, key, value in, result out, each once."""
        result = _product(self.q[:-1]) * self.v[-1]
        return self.element_bytes * (_product(self.q) + _product(self.k) + _product(self.v) + result)


def sdpa_inputs(trace: Trace, row: int, *, on_gpu: bool = True) -> SdpaInputs | None:
    """Read the inputs of an SDPA op; None where shapes were not recorded or make no sense."""
    args = trace.args_of(row)
    dims, types = args.get("Input Dims"), args.get("Input type")
    if not (isinstance(dims, list) and isinstance(types, list) and len(dims) >= 3 and len(types) >= 3):
        return None
    shapes = [_whole_numbers(entry) for entry in dims[:4]]
    if any(len(shape) < 2 or 0 in shape for shape in shapes[:3]):  # q, k and v have rows and columns
        return None
    strides = args.get("Input Strides")
    stated = args.get("Concrete Inputs")
    return SdpaInputs(
        q=shapes[0],
        k=shapes[1],
        v=shapes[2],
        types=(str(types[0]), str(types[1]), str(types[2])),
        strides=tuple(_whole_numbers(entry) for entry in strides[:3]) if isinstance(strides, list) else (),
        mask=shapes[3] if len(shapes) > 3 else (),  # the fourth input is the mask
        causal=_flag(stated, 5),
        gqa=_flag(stated, -1),
        dropout=_positive(stated, 4),
        on_gpu=on_gpu,
    )


def largest_inputs(trace: Trace, rows: Int64, *, on_gpu: bool) -> SdpaInputs | None:
    """Read the inputs of the call with the largest products, which costs most; None if none are recorded."""
    found = [sdpa_inputs(trace, int(row), on_gpu=on_gpu) for row in rows[:64]]
    known = [inputs for inputs in found if inputs is not None]
    return max(known, key=lambda inputs: inputs.flops, default=None)


def is_for_dropout(inputs: SdpaInputs | None) -> bool:
    """Tell whether nothing but dropout on a CPU keeps fused kernels away: the model wants it in training."""
    return inputs is not None and obstacles(inputs) == [CPU_DROPOUT]


def obstacles(inputs: SdpaInputs) -> list[str]:
    """Say what in the recorded inputs rules out every fused backend, or most; empty where nothing does."""
    found = []
    if any(len(shape) != _DIMENSIONS for shape in (inputs.q, inputs.k, inputs.v)):
        found.append(
            f"the query has {len(inputs.q)} dimensions; fused kernels take 4 (batch, heads, length, head "
            "dimension)"
        )
    if inputs.types[0] == "double" and inputs.on_gpu:
        found.append("float64 has no fused kernel")
    if len(set(inputs.types)) > 1:
        found.append("query, key and value differ in type")
    if any(
        _last_is_strided(shape, stride)
        for shape, stride in zip(_shapes(inputs), inputs.strides, strict=False)
    ):
        found.append("the last dimension of an input is not contiguous")
    return found + (_head_obstacles(inputs) if inputs.on_gpu else _cpu_obstacles(inputs))


CPU_DROPOUT: Final = "the fused kernel for CPUs has no dropout (dropout_p is above 0)"


def _cpu_obstacles(inputs: SdpaInputs) -> list[str]:
    """Say what keeps PyTorch's one fused kernel for CPUs away (tried with torch 2.13)."""
    found = [CPU_DROPOUT] if inputs.dropout else []
    if any(len(shape) != _DIMENSIONS for shape in _shapes(inputs)):
        return found
    if inputs.v[3] != inputs.q[3]:
        found.append(f"the value has a head dimension of {inputs.v[3]}, the query one of {inputs.q[3]}")
    if inputs.k[0] != inputs.q[0]:
        found.append(f"a batch of {inputs.q[0]} queries meets one of {inputs.k[0]} keys")
    if len(inputs.mask) not in (0, 2, _DIMENSIONS):
        found.append(f"the mask has {len(inputs.mask)} dimensions; the kernel takes 2 or 4")
    return found


def _head_obstacles(inputs: SdpaInputs) -> list[str]:
    if any(len(shape) != _DIMENSIONS for shape in _shapes(inputs)):
        return []
    grouped = inputs.k[1] != inputs.q[1]
    found = []
    if grouped and inputs.gqa is False:
        found.append(f"{inputs.q[1]} query heads meet {inputs.k[1]} key heads without enable_gqa=True")
    elif grouped and not inputs.half:
        found.append(
            "grouped heads (enable_gqa) with inputs that are not 16-bit: only the flash and cuDNN kernels "
            "group heads"
        )
    elif grouped and inputs.q[3] > _FLASH_HEAD_DIM:
        found.append(
            f"grouped heads with a head dimension of {inputs.q[3]}: the kernels that group heads stop at 256"
        )
    return found


def _shapes(inputs: SdpaInputs) -> tuple[tuple[int, ...], ...]:
    return (inputs.q, inputs.k, inputs.v)


def _last_is_strided(shape: Sequence[int], strides: Sequence[int]) -> bool:
    return bool(strides) and shape[-1] > 1 and strides[-1] != 1


def _whole_numbers(value: Any) -> tuple[int, ...]:
    if isinstance(value, list) and all(isinstance(entry, int) for entry in value):
        return tuple(value)
    return ()


def _flag(stated: Any, position: int) -> bool | None:
    if not isinstance(stated, list) or len(stated) < 8:  # 8 inputs since 2.5, with enable_gqa as the last
        return None
    return {"True": True, "False": False}.get(str(stated[position]))


def _positive(stated: Any, position: int) -> bool:
    """Tell whether an input was recorded as a number above 0."""
    if not isinstance(stated, list) or len(stated) <= position:
        return False
    try:
        return float(str(stated[position])) > 0
    except ValueError:
        return False


def _product(numbers: Sequence[int]) -> int:
    product = 1
    for number in numbers:
        product *= number
    return product
