"""Kernel name to identity: library, algorithm, math unit, data type, and what else the name says."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tracehunch.kernels.mangled import canonical
from tracehunch.kernels.rule import Groups, Rule, all_rules

UNCLASSIFIED: Final = "unclassified"

# Algorithms that only move, cast or lay out data, as far as a name can say. Whether a copy was asked for, the
# op says.
COPY_ALGORITHMS: Final = frozenset({"copy", "cat", "layout-transform"})

_BARE_IDENTIFIER = re.compile(r"^[A-Za-z_]\w{0,500}$")
_TRITON_NOTE: Final = (
    "The name is the user's own; that it is a Triton kernel follows from how it was launched. "
    "Whether it uses matrix units, the name does not say."
)

_OTHER_VENDOR: Final = {"nvidia": "amd", "amd": "nvidia"}
# Names that both vendors' builds share, in the words of AMD's.
_AMD_UNITS: Final = {"tensor-core": "mfma", "cuda-core": "vector"}
_AMD_LIBRARIES: Final = {"nccl": "rccl"}

_MEMCPY = re.compile(r"^Memcpy (?P<direction>\w+)(?: \((?P<source>\w+) -> (?P<target>\w+)\))?")
_MEMSET = re.compile(r"^Memset \((?P<target>[\w ]+)\)")
_DIRECTIONS: Final = {
    "HtoD": "host to device",
    "DtoH": "device to host",
    "DtoD": "device to device",
    "HtoH": "host to host",
    "PtoP": "device to another device",
}
_PAGEABLE_NOTE: Final = (
    "Pageable host memory is staged through a pinned buffer, so the copy cannot overlap with the host."
)


@dataclass(frozen=True, slots=True)
class Identity:
    """What a kernel's name says about it.

    `unit` is "tensor-core" or "cuda-core" for matrix kernels of NVIDIA, "mfma" or "vector" for those of AMD,
    "unknown" for a matrix kernel whose name does not say, and "none" for all others. `dtype` is as the name
    encodes it, `None` when it does not. `fields` are the decoded parts of the name in words, `rule` the id of
    the rule that fired.
    """

    name: str
    library: str
    algorithm: str
    unit: str
    dtype: str | None
    fields: tuple[tuple[str, str], ...]
    rule: str | None
    note: str

    @property
    def classified(self) -> bool:
        """Whether library and algorithm are both known."""
        return UNCLASSIFIED not in (self.library, self.algorithm)


def matches(name: str, hints: tuple[str, ...] = ()) -> Iterator[tuple[Rule, Groups]]:
    """Yield every rule that matches a name, with its groups; more than one is a defect of the tables."""
    text = canonical(name)
    excluded = {_OTHER_VENDOR[hint] for hint in hints if hint in _OTHER_VENDOR}
    for rule in all_rules().rules:
        if rule.vendor in excluded:
            continue
        groups = rule.match(text)
        if groups is not None:
            yield rule, groups


@lru_cache(maxsize=16_384)
def classify(name: str, *, hints: tuple[str, ...] = ()) -> Identity:
    """Return a kernel's identity from its name.

    `hints` are what the trace knows beside the name: "triton" when the launch shows that the kernel came from
    Triton, "nvidia" or "amd" for the GPU; `launch_hints` and `vendor_hint` compute them. With "triton", a
    name that is a plain identifier and that no rule knows is a user's Triton kernel; without it such a name
    stays unclassified. A vendor excludes the other one's rules, and words the identity in its own terms.
    """
    for rule, groups in matches(name, hints):
        return _identity(name, rule, groups, amd="amd" in hints)
    if "triton" in hints and _BARE_IDENTIFIER.match(name) is not None:
        return Identity(name, "triton", "user-kernel", "unknown", None, (), "triton-launch", _TRITON_NOTE)
    return Identity(name, UNCLASSIFIED, UNCLASSIFIED, "none", None, (), None, "")


def _identity(name: str, rule: Rule, groups: Groups, *, amd: bool) -> Identity:
    words = all_rules().words
    library = rule.library.fill(groups, words) or UNCLASSIFIED
    unit = rule.unit.fill(groups, words) or "unknown"
    filled = ((label, template.fill(groups, words)) for label, template in rule.fields)
    return Identity(
        name=name,
        library=_AMD_LIBRARIES.get(library, library) if amd else library,
        algorithm=rule.algorithm.fill(groups, words) or UNCLASSIFIED,
        unit=_AMD_UNITS.get(unit, unit) if amd else unit,
        dtype=rule.dtype.fill(groups, words),
        fields=tuple((label, value) for label, value in filled if value is not None),
        rule=rule.id,
        note=rule.note,
    )


@lru_cache(maxsize=1_024)
def classify_activity(name: str, kind: str, *, hints: tuple[str, ...] = ()) -> Identity:
    """Return the identity of a GPU activity of kind "kernel", "memcpy" or "memset".

    Copies and memsets are the driver's on any vendor; their names tell direction and kind of host memory.
    """
    if kind == "memcpy":
        return _memcpy(name)
    if kind == "memset":
        found = _MEMSET.match(name)
        fields = () if found is None else (("memory", found.group("target").lower()),)
        return Identity(name, "driver", "memset", "none", None, fields, "driver-memset", "")
    return classify(name, hints=hints)


def _memcpy(name: str) -> Identity:
    found = _MEMCPY.match(name)
    fields: list[tuple[str, str]] = []
    note = ""
    if found is not None:
        direction, source, target = found.group("direction", "source", "target")
        fields.append(("direction", _DIRECTIONS.get(direction, direction)))
        if source is not None:
            fields += [("from", source.lower()), ("to", target.lower())]
        if "Pageable" in (source, target):
            note = _PAGEABLE_NOTE
    return Identity(name, "driver", "memcpy", "none", None, tuple(fields), "driver-memcpy", note)


def is_copy_kernel(identity: Identity) -> bool:
    """Tell whether a kernel only copies, casts or lays out data, as far as its name says."""
    return identity.algorithm in COPY_ALGORITHMS
