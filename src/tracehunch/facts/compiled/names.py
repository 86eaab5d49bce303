"""Names of the kernels that Inductor generates: kind, ops, and whether the name is whole.

Triton kernels are called ``triton_<kind>_fused_<ops>_<number>``, C++ loops, where they are recorded at all,
``graph_<graph>_cpp_fused_<ops>_<number>`` (torch._inductor.codegen, torch 2.1 to 2.13).
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tracehunch.facts.compiled.pieces import pieces

_NAME: Final = re.compile(
    r"(?:(?P<host>(?:graph_\d+_)?cpp)|triton_(?P<kind>poi|red|per|tem|mix|for|spl|coo|unk))_fused"
    r"(?:_(?P<ops>\w{1,4000}?))??(?P<number>_\d+)?(?:_0d\w*)?"
)
_TEMPLATE: Final = "tem"


@dataclass(frozen=True, slots=True)
class Generated:
    """What a generated kernel's name says. ``joined``: its ops as the name joins them, "" for none."""

    name: str
    kind: str  # poi, red, per, tem, mix, for, spl, coo, unk as Inductor writes it; cpp
    joined: str
    cut: bool
    """Whether its end is missing: each name ends in a number."""

    @property
    def ops(self) -> tuple[str, ...]:
        """The ops, as ``("_unsafe_view", "gelu", "mul")``."""
        return pieces(self.joined)

    @property
    def is_template(self) -> bool:
        """Whether it multiplies matrices or attends, by one of Inductor's templates."""
        return self.kind == _TEMPLATE


@lru_cache(maxsize=4096)
def generated(name: str) -> Generated | None:
    """Take a name apart; None for what Inductor did not name after ops."""
    found = _NAME.fullmatch(name)
    if found is None:
        return None
    return Generated(name, found["kind"] or "cpp", found["ops"] or "", cut=found["number"] is None)


def is_generated(name: str) -> bool:
    """Tell the names that ``generated`` can take apart."""
    return generated(name) is not None


def is_host_kernel(name: str) -> bool:
    """Tell rows of the C++ loops that Inductor generates for a CPU."""
    found = generated(name)
    return found is not None and found.kind == "cpp"
