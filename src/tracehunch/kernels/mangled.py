"""Bring kernel names, as profilers write them, into one form that rules can be anchored on.

Three spellings occur in traces: the demangled C++ name (most of CUDA and ROCm), the mangled Itanium name
(ROCm, when the demangler did not know a type, such as its bfloat16), and a plain identifier (assembly
kernels, Triton, cuBLAS).
"""

import re
from typing import Final

# Longest part of a name that rules look at, in characters. Names of 64 KB exist (templates full of lambdas);
# what identifies a kernel stands at the beginning, and matching time must stay bounded for any input.
MATCHED_PREFIX: Final = 6_000

_ANONYMOUS = re.compile(
    r"\(anonymous namespace\)::"
    r"|_GLOBAL__N__\w{1,200}::"
    r"|\{anonymous\}::"
    r"|\(anonymous n?[a-z]*\)?:?$"  # cut off in the middle
)
_RETURN_TYPE = re.compile(r"^(?:static )?(?:void|std::enable_if<[^<>]{0,200}>::type)\s+")
_HIP_SUFFIX = re.compile(r"(?: \[clone )?\.kd\]?$")
_NESTED = re.compile(r"N[rVKRO]*")
_PIECE = re.compile(r"(\d{1,3})(?=[A-Za-z_])")


def unmangled_head(name: str) -> str | None:
    """Return the namespaces and the name of a mangled function, `None` where it is not in that form.

    Only the nested name in front is read (`_ZN5aiter9some_nameI...` gives `aiter::some_name<...`), since it
    is all that rules need; the template arguments stay mangled. The grammar is the Itanium C++ ABI's, section
    5.1.
    """
    if not name.startswith("_Z"):
        return None
    nested = _NESTED.match(name, 2)
    at = 2 if nested is None else nested.end()
    if nested is None and name.startswith("L", at):  # internal linkage
        at += 1
    pieces, at = _pieces(name, at, most=1 if nested is None else len(name))
    if not pieces:
        return None
    head = "::".join(piece for piece in pieces if not piece.startswith("_GLOBAL__N"))
    if name.startswith("I", at):
        return f"{head}<{name[at + 1 :]}"
    return f"{head}({name[at:]}"


def _pieces(name: str, at: int, most: int) -> tuple[list[str], int]:
    """Read length-prefixed identifiers from `at` on; return them and where they end."""
    pieces: list[str] = []
    while len(pieces) < most and (found := _PIECE.match(name, at)) is not None:
        end = found.end() + int(found.group(1))
        if end > len(name):
            return [], at
        pieces.append(name[found.end() : end])
        at = end
    return pieces, at


def canonical(name: str) -> str:
    """Return the name without return type, anonymous namespaces and ROCm's suffix, and bounded in length."""
    text = name[: MATCHED_PREFIX + 500]
    text = unmangled_head(text) or text
    text = _RETURN_TYPE.sub("", text, count=1)
    if "anonymous" in text or "_GLOBAL__N__" in text:
        text = _ANONYMOUS.sub("", text)
    if text.endswith((".kd", ".kd]")):
        text = _HIP_SUFFIX.sub("", text)
    return text[:MATCHED_PREFIX]
