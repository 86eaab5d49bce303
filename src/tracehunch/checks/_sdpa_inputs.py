"""What a trace recorded of the inputs of one SDPA call, and which of them keep fused kernels away."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tracehunch.trace.model import Trace

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


def sdpa_inputs(trace: Trace, row: int) -> SdpaInputs | None:
    """Read the inputs of an SDPA op; None where shapes were not recorded or make no sense."""
    args = trace.args_of(row)
    dims, types = args.get("Input Dims"), args.get("Input type")
    if not (isinstance(dims, list) and isinstance(types, list) and len(dims) >= 3 and len(types) >= 3):  # noqa: PLR2004
        return None
    shapes = [_whole_numbers(entry) for entry in dims[:4]]
    if any(len(shape) < 2 or 0 in shape for shape in shapes[:3]):  # noqa: PLR2004  # q, k and v have rows and columns
        return None
    strides = args.get("Input Strides")
    stated = args.get("Concrete Inputs")
    return SdpaInputs(
        q=shapes[0],
        k=shapes[1],
        v=shapes[2],
        types=(str(types[0]), str(types[1]), str(types[2])),
        strides=tuple(_whole_numbers(entry) for entry in strides[:3]) if isinstance(strides, list) else (),
        mask=shapes[3] if len(shapes) > 3 else (),  # noqa: PLR2004  # the fourth input is the mask
        causal=_flag(stated, 5),
        gqa=_flag(stated, -1),
    )


def obstacles(inputs: SdpaInputs) -> list[str]:
    """Say what in the recorded inputs rules out every fused backend, or most; empty where nothing does."""
    found = []
    if any(len(shape) != _DIMENSIONS for shape in (inputs.q, inputs.k, inputs.v)):
        found.append(
            f"the query has {len(inputs.q)} dimensions; fused kernels take 4 (batch, heads, length, head "
            "dimension)"
        )
    if inputs.types[0] == "double":
        found.append("float64 has no fused kernel")
    if len(set(inputs.types)) > 1:
        found.append("query, key and value differ in type")
    if any(
        _last_is_strided(shape, stride)
        for shape, stride in zip(_shapes(inputs), inputs.strides, strict=False)
    ):
        found.append("the last dimension of an input is not contiguous")
    return found + _head_obstacles(inputs)


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
    if not isinstance(stated, list) or len(stated) < 8:  # noqa: PLR2004  # 8 inputs since 2.5, with enable_gqa as the last
        return None
    return {"True": True, "False": False}.get(str(stated[position]))


def _product(numbers: Sequence[int]) -> int:
    product = 1
    for number in numbers:
        product *= number
    return product
