"""A kernel's name in words, for people."""

import re
from typing import Final

from tracehunch.kernels.identity import Identity, classify, classify_activity
from tracehunch.kernels.mangled import canonical

_LONGEST_SHOWN: Final = 160  # characters of a name; the rest is template arguments
_SHOWN_ARGUMENTS: Final = 60  # characters of the template arguments of an unknown kernel
_UNITS: Final = {
    "tensor-core": "tensor cores",
    "cuda-core": "CUDA cores (no tensor cores)",
    "mfma": "matrix cores (MFMA instructions)",
    "vector": "vector ALUs (no MFMA instructions)",
    "unknown": "not said by the name",
    "none": "no matrix math",
}
_HEAD = re.compile(r"^[\w:~]{1,500}")


def explain(name: str, *, hints: tuple[str, ...] = ()) -> str:
    """Return several lines of plain text: what the name says, and no more than that."""
    if name.startswith("Memcpy "):
        identity = classify_activity(name, "memcpy")
    elif name.startswith("Memset "):
        identity = classify_activity(name, "memset")
    else:
        identity = classify(name, hints=hints)
    shown = name
    if len(name) > _LONGEST_SHOWN:
        shown = f"{name[:_LONGEST_SHOWN]}... ({len(name)} characters)"
    lines = _classified(identity) if identity.classified else _unclassified(name)
    return "\n".join([shown, *lines])


def _classified(identity: Identity) -> list[str]:
    rows = [
        ("library", identity.library),
        ("algorithm", identity.algorithm),
        ("math unit", _UNITS.get(identity.unit, identity.unit)),
        ("data type", identity.dtype or "not said by the name"),
        *identity.fields,
    ]
    width = max(len(label) for label, _ in rows)
    lines = [f"  {label:<{width}}  {value}" for label, value in rows]
    if identity.note:
        lines.append(f"  note: {identity.note}")
    return lines


def _unclassified(name: str) -> list[str]:
    """Say what is visible in a name that no rule knows: its form, its namespace, its template arguments."""
    lines = ["  unclassified: no rule knows this name, so neither library nor algorithm is stated."]
    text = canonical(name)
    found = _HEAD.match(text)
    if found is None:
        return lines
    namespace, _, function = found.group(0).rpartition("::")
    rest = text[found.end() :]
    if rest.startswith("<"):
        arguments = rest[1 : 1 + _SHOWN_ARGUMENTS]
        lines.append(f"  form: a C++ template named {function}, with arguments that start {arguments!r}")
    elif rest.startswith("("):
        lines.append(f"  form: a C++ function named {function}")
    elif not rest and not namespace:
        lines.append(
            "  form: a plain identifier, as Triton, hand-written and assembly kernels have; "
            "the launch in a trace may tell which, the name does not"
        )
    if namespace:
        lines.append(f"  namespace: {namespace}")
    return lines
