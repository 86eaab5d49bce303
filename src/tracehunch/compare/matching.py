"""Which uses of one trace are which of the other: from the strictest likeness to the loosest."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from tracehunch.compare.attention import attention_groups
from tracehunch.compare.fusion import fused_groups
from tracehunch.facts.activities import COPY_OPS
from tracehunch.predict.traced import SDPA

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from tracehunch.compare.model import Use

How = Literal["same", "kernel", "replaced", "fused", "unfused", "alone"]

_ALIKE: Final = ("gemm", "conv")
"""Algorithms of which a scope that has as many on each side has the same ones, whatever launched them."""


@dataclass(frozen=True, slots=True)
class Match:
    """Uses that stand for each other: ``same``, another ``kernel``, or one's work done by others."""

    how: How
    before: tuple[Use, ...]
    after: tuple[Use, ...]


def match_uses(before: Sequence[Use], after: Sequence[Use]) -> list[Match]:
    """Match the uses of two scopes; what has no counterpart is ``alone``."""
    left = _Left(list(before), list(after))
    left.match("same", lambda use: (use.kind, use.path, use.name))
    left.match("kernel", lambda use: (use.kind, use.path, _identity(use)), only_if=_even)
    left.match("kernel", lambda use: (use.kind, use.path) if use.path else None, only_if=_even)
    left.match("same", lambda use: (use.kind, use.op, use.name) if _is_by_op(use) else None)
    left.match(
        "kernel", lambda use: (use.kind, use.op, _identity(use)) if _is_by_op(use) else None, only_if=_even
    )
    left.match("same", lambda use: (use.kind, use.name) if _is_named(use) else None, only_if=_one_without_op)
    left.take("fused", fused_groups(left.before, left.after, reverse=False))
    left.take("unfused", fused_groups(left.before, left.after, reverse=True))
    left.take("replaced", attention_groups(left.before, left.after))
    left.match("kernel", _algorithm, only_if=_even)
    left.match("replaced", _in_place)
    for depth in range(_deepest(left.before, left.after), 0, -1):
        left.match("replaced", partial(_path_to, depth))
    left.match("kernel", lambda use: (use.kind, _identity(use)) if not use.path else None, only_if=_even)
    alone = [Match("alone", tuple(group), ()) for group in _by_root(left.before, after)]
    return [
        *left.found,
        *alone,
        *(Match("alone", (), tuple(group)) for group in _by_root(left.after, before)),
    ]


def match_host(before: Sequence[Use], after: Sequence[Use]) -> list[Match]:
    """Match what the host does by op or call alone, wherever it does it."""
    left = _Left(list(before), list(after))
    left.match("same", lambda use: (use.kind, use.op if use.kind == "op" else use.name))
    gone, new = (_by(lambda use: (use.kind, use.name), uses) for uses in (left.before, left.after))
    alone = [Match("alone", tuple(group), ()) for group in gone.values()]
    return [*left.found, *alone, *(Match("alone", (), tuple(group)) for group in new.values())]


def _by_root(alone: Sequence[Use], others: Sequence[Use]) -> list[list[Use]]:
    """Put together what an op launches that launches nothing on the other side, and what SDPA does beside."""
    there = {use.path[0] for use in others if use.path}
    groups: dict[object, list[Use]] = {}
    for use in alone:
        root = use.path[0] if use.path else ""
        is_one = root and (root not in there or root == SDPA)
        groups.setdefault(root if is_one else id(use), []).append(use)
    return list(groups.values())


class _Left:
    """What was matched until now, and what is left of both sides."""

    def __init__(self, before: list[Use], after: list[Use]) -> None:
        self.before, self.after = before, after
        self.found: list[Match] = []

    def match(
        self,
        how: How,
        key: Callable[[Use], Hashable | None],
        only_if: Callable[[Sequence[Use], Sequence[Use]], bool] | None = None,
    ) -> None:
        """Match what has the same key on both sides; a key of None matches nothing."""
        first, second = _by(key, self.before), _by(key, self.after)
        groups = [(first[one], second[one]) for one in first if one in second]
        self.take(how, [pair for pair in groups if only_if is None or only_if(*pair)])

    def take(self, how: How, groups: Iterable[tuple[Sequence[Use], Sequence[Use]]]) -> None:
        """Match groups of uses."""
        for first, second in groups:
            self.found.append(Match(how, tuple(first), tuple(second)))
            self.before = _without(self.before, first)
            self.after = _without(self.after, second)


def _by(key: Callable[[Use], Hashable | None], uses: Sequence[Use]) -> dict[Hashable, list[Use]]:
    found: dict[Hashable, list[Use]] = defaultdict(list)
    for use in uses:
        if (one := key(use)) is not None:
            found[one].append(use)
    return found


def _without(uses: Sequence[Use], taken: Sequence[Use]) -> list[Use]:
    gone = {id(use) for use in taken}
    return [use for use in uses if id(use) not in gone]


def _identity(use: Use) -> tuple[str, str, str | None] | None:
    """Return what kind of kernel it is; None, which matches its like, where nobody knows."""
    one = use.identity
    return None if one is None or not one.classified else (one.library, one.algorithm, one.dtype)


def _algorithm(use: Use) -> str | None:
    return use.identity.algorithm if use.identity is not None and use.identity.algorithm in _ALIKE else None


def _in_place(use: Use) -> tuple[str, ...] | None:
    """Return the outermost op without the mark of its in-place form."""
    return (use.path[0].rstrip("_"),) if use.path and use.path[0].rstrip("_") != "" else None


def _path_to(depth: int, use: Use) -> tuple[str, ...] | None:
    return use.path[:depth] if len(use.path) >= depth else None


def _is_by_op(use: Use) -> bool:
    """Whether the op says enough: not so for copies, whose reason is in the ops around them."""
    return bool(use.op) and use.op not in COPY_OPS and use.kind not in ("op", "call")


def _is_named(use: Use) -> bool:
    return use.kind not in ("op", "call") and use.identity is not None and use.identity.classified


def _one_without_op(before: Sequence[Use], after: Sequence[Use]) -> bool:
    """Kernels of a graph's replay have no op: then the name has to do."""
    return all(not use.path for use in before) or all(not use.path for use in after)


def _even(before: Sequence[Use], after: Sequence[Use]) -> bool:
    """Whether as many run on both sides."""
    return (
        abs(sum(use.per_call for use in before) - sum(use.per_call for use in after)) < 0.5
    )  # of one a call


def _deepest(before: Sequence[Use], after: Sequence[Use]) -> int:
    return max((len(use.path) for use in (*before, *after)), default=0)
