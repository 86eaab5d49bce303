"""Known GPUs and their data-sheet numbers, one TOML each; a GPU that is not among them has no roofline."""

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Final

_TERA: Final = 1e12
_GIGA: Final = 1e9
_MEBI: Final = 1 << 20

# A header's totalGlobalMem is what the driver leaves of the nominal size, and data sheets mean 10^9 or 2^30
# bytes by a gigabyte.
_MEMORY_BAND: Final = (0.85, 1.10)

# Data types with a peak of their own, and the matrix unit's peaks that they use.
_MATRIX_PEAK: Final = {
    "bf16": "bf16_matrix_flops",
    "fp16": "fp16_matrix_flops",
    "tf32": "tf32_matrix_flops",
    "fp8": "fp8_matrix_flops",
}


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU as torch sees it (one die where a package has two), with dense vendor peaks at boost clock.

    Rates are FLOP/s, `bandwidth` bytes per second, sizes bytes. A rate is `None` where the GPU has no such
    unit or the data sheet does not say. `sources` has the origin of each number, by the name it has in the
    TOML.
    """

    key: str
    name: str
    vendor: str
    architecture: str
    compute_capability: str
    sms: int
    bf16_matrix_flops: float | None
    fp16_matrix_flops: float | None
    tf32_matrix_flops: float | None
    fp8_matrix_flops: float | None
    fp32_flops: float
    bandwidth: float
    memory_bytes: int
    l2_bytes: int | None
    note: str
    sources: tuple[tuple[str, str], ...]

    def matrix_peak(self, dtype: str) -> float | None:
        """Return the tensor or matrix cores' peak in FLOP/s, `None` for a data type that they do not take."""
        field = _MATRIX_PEAK.get(dtype)
        value = None if field is None else getattr(self, field)
        return value if isinstance(value, float) else None


@dataclass(frozen=True, slots=True)
class _Entry:
    """A GPU, and how a trace's header shows it."""

    gpu: Gpu
    names: tuple[re.Pattern[str], ...]
    shared_names: tuple[re.Pattern[str], ...]
    """Names that other GPUs may have as well: they count only together with SMs and memory."""
    sms: tuple[int, int]

    def fits(self, name: str, sms: int | None, memory_bytes: int | None) -> bool:
        low, high = _MEMORY_BAND
        names = self.names if sms is None or memory_bytes is None else (*self.names, *self.shared_names)
        return (
            any(pattern.fullmatch(name) is not None for pattern in names)
            and (sms is None or self.sms[0] <= sms <= self.sms[1])
            and (memory_bytes is None or low <= memory_bytes / self.gpu.memory_bytes <= high)
        )


def _entry(key: str, table: Mapping[str, Any]) -> _Entry:
    numbers: Mapping[str, Mapping[str, Any]] = table["numbers"]

    def number(field: str, scale: float) -> float | None:
        return None if field not in numbers else numbers[field]["value"] * scale

    fp32, bandwidth = number("fp32_tflops", _TERA), number("bandwidth_gb_s", _GIGA)
    memory, l2 = number("memory_gb", _GIGA), number("l2_mib", _MEBI)
    assert fp32 is not None
    assert bandwidth is not None
    assert memory is not None
    sms = numbers["sms"]
    return _Entry(
        gpu=Gpu(
            key=key,
            name=table["name"],
            vendor=table["vendor"],
            architecture=table["architecture"],
            compute_capability=table["compute_capability"],
            sms=sms["value"],
            bf16_matrix_flops=number("bf16_tflops", _TERA),
            fp16_matrix_flops=number("fp16_tflops", _TERA),
            tf32_matrix_flops=number("tf32_tflops", _TERA),
            fp8_matrix_flops=number("fp8_tflops", _TERA),
            fp32_flops=fp32,
            bandwidth=bandwidth,
            memory_bytes=round(memory),
            l2_bytes=None if l2 is None else round(l2),
            note=table.get("note", ""),
            sources=tuple((field, entry["source"]) for field, entry in numbers.items()),
        ),
        names=_patterns(table["match"]),
        shared_names=_patterns(table.get("match_with_size", ())),
        sms=(sms.get("least", sms["value"]), sms.get("most", sms["value"])),
    )


def _patterns(texts: Iterable[str]) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(text, re.IGNORECASE) for text in texts)


@lru_cache(maxsize=1)
def _entries() -> tuple[_Entry, ...]:
    folder = files(__package__) / "gpus"
    tables = {
        file.name.removesuffix(".toml"): tomllib.loads(file.read_text(encoding="utf-8"))
        for file in folder.iterdir()
        if file.name.endswith(".toml")
    }
    return tuple(_entry(key, tables[key]) for key in sorted(tables))


def all_gpus() -> tuple[Gpu, ...]:
    """Return every GPU of the table, by key."""
    return tuple(entry.gpu for entry in _entries())


@cache
def find_gpu(name: str, *, sms: int | None = None, memory_bytes: int | None = None) -> Gpu | None:
    """Return the GPU that a name, as `deviceProperties` and torch.cuda give it, stands for.

    The number of SMs and the memory in bytes tell variants of one name apart. `None` for a GPU that is not in
    the table, for a part of one (MIG, a partition), and where two variants remain.
    """
    found = [entry.gpu for entry in _entries() if entry.fits(name.strip(), sms, memory_bytes)]
    return found[0] if len(found) == 1 else None
