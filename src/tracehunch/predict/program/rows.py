"""Calls by op and module, and by module with all that is inside it."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tracehunch.guess.model import Confidence
from tracehunch.predict.program.amounts import added, amounts
from tracehunch.predict.program.model import CallGuess, ModuleRow, OpPart, OpRow

_ORDER: Final[tuple[Confidence, ...]] = ("low", "medium", "high")


@dataclass(frozen=True, slots=True)
class _Share:
    """A part of a call, with the call."""

    of: CallGuess
    part: OpPart


def op_rows(calls: Iterable[CallGuess], *, by_module: bool) -> tuple[OpRow, ...]:
    """Return what runs under each op, by module or over all of them, the most GPU time first.

    Calls that run nothing have no row.
    """
    groups: dict[tuple[str, str], list[_Share]] = defaultdict(list)
    for one in calls:
        for part in one.parts:
            if not part.activities.empty:
                groups[part.op, one.call.module if by_module else ""].append(_Share(one, part))
    rows = [_op_row(op, module, shares) for (op, module), shares in groups.items()]
    return tuple(sorted(rows, key=lambda row: (-(row.amounts.gpu_time_us or 0.0), -row.amounts.kernels)))


def _op_row(op: str, module: str, shares: Sequence[_Share]) -> OpRow:
    parts = [share.part.activities for share in shares]
    found = added(parts, [share.of.call.op for share in shares])
    whole = amounts({id(share.of): share.of for share in shares}.values())
    alone = all(len(share.of.parts) == 1 for share in shares)
    of_call = {share.of.call.module_type for share in shares} if module else set()
    return OpRow(
        op,
        module,
        replace(found, roofline_us=whole.roofline_us if alone else None, bound=whole.bound),
        called=_distinct(share.of.call.op for share in shares),
        module_type=next(iter(of_call), ""),
        lines=_distinct(share.of.call.line for share in shares),
        confidence=min((one.confidence for one in parts), key=_ORDER.index, default="high"),
        reasons=_distinct(reason for one in parts for reason in one.reasons),
    )


def module_rows(calls: Sequence[CallGuess]) -> tuple[ModuleRow, ...]:
    """Return each module with all inside it, in the order of first calls, an outer one before its inner.

    The first row, "", is the whole.
    """
    inside: dict[str, list[CallGuess]] = defaultdict(list)
    types: dict[str, str] = {}
    for one in calls:
        path = one.call.module
        types.setdefault(path, one.call.module_type)
        for module in around(path):
            inside[module].append(one)
    rows = [ModuleRow("", types.get("", ""), amounts(calls))]
    rows += [ModuleRow(path, types.get(path, ""), amounts(own)) for path, own in inside.items() if path]
    return tuple(rows)


def around(module: str) -> tuple[str, ...]:
    """Return the paths of a module and of those around it, outermost ("") first."""
    parts = module.split(".") if module else []
    return ("", *(".".join(parts[:count]) for count in range(1, len(parts) + 1)))


def _distinct(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))
