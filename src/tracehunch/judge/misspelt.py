"""Slips in the names of ops that a claim says lead: names that no op has, much like one that there is."""

from collections.abc import Sequence
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Final

from tracehunch.facts.model import Facts
from tracehunch.guess.model import Claim
from tracehunch.guess.op_scope import op_names
from tracehunch.judge.leads import plain_name

_ATEN: Final = "aten::"
_ALIKE: Final = 0.8
_LONGEST: Final = 64


def slip_in(claim: Claim, facts: Facts) -> str:
    """Say which claimed op is none, with the one that was meant; "" where all are, or none is near.

    Ops are those of the trace and PyTorch's own (``aten_ops.txt``: of torch 2.13). Names with another
    namespace, and Autograd's nodes, are taken as they are.
    """
    if claim.relation != "leads":
        return ""
    claimed = claim.expected if isinstance(claim.expected, tuple) else (claim.expected,)
    return next(filter(None, (_slip(str(op), op_names(facts)) for op in claimed)), "")


def _slip(op: str, in_trace: Sequence[str]) -> str:
    bare = op.removeprefix(_ATEN)
    if not bare.islower() or "::" in bare or len(bare) > _LONGEST:
        return ""
    known = {plain_name(name): f"{_ATEN}{name}" for name in aten_ops()}
    known |= {
        plain_name(name): name for name in sorted(in_trace, key=len, reverse=True) if len(name) <= _LONGEST
    }
    if plain_name(op) in known:
        return ""
    near = get_close_matches(plain_name(op), known, n=1, cutoff=_ALIKE)
    return f"no op is called {op}, a slip in the guess: did you mean {known[near[0]]}?" if near else ""


@cache
def aten_ops() -> tuple[str, ...]:
    """Return the names of PyTorch's ops, without namespace and overload, sorted."""
    return tuple((files("tracehunch.judge") / "aten_ops.txt").read_text("utf-8").split())
