"""Ranks that are unlike the others: each judged by the facts of the median rank among its peers.

What is counted or named (kernels, copies, SDPA backend, number format ...) has to be exactly what at least
two thirds of the peers have; where there is no such majority, as in a mixture of experts, nothing is odd. Of
two ranks neither is the odd one: what differs is told once, of the second, with ``ranks`` 1. GPU time of an
op is odd with three ranks and more, where it stands out from their spread; times in which a rank waits never.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import median, median_low
from typing import TYPE_CHECKING, Final

from tracehunch.compare.ranks.blame import gpu_times_us
from tracehunch.compare.ranks.damage import undamaged
from tracehunch.compare.ranks.model import Odd
from tracehunch.compare.ranks.per_step import per_step

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.peers import Peers
    from tracehunch.facts.model import Value

COUNTS: Final = (
    "kernels", "copies", "copies.dtod", "copies.htod", "copies.dtoh", "copies.ptop", "copy_kernels",
    "memsets", "launches", "leaf_ops", "graph", "compiled", "compiled.kernels", "compiled.graph_breaks",
    "compiled.recompiles", "copy_bytes", "flops",
)  # fmt: skip
LOOSE: Final = ("syncs", "allocations")
"""Counts that vary by chance: how often an event was polled, whether memory was cached."""
WORDS: Final = ("sdpa.backend", "dtype", "tensor_cores")
_WHOLE: Final = "whole"
_STEP: Final = "ProfilerStep"
_MAJORITY: Final = 2 / 3
_LOOSE_PART: Final = 0.2
_LOOSE_COUNT: Final = 2
_SPREADS: Final = 5.0
_TIME_PART: Final = 0.1
_MATERIAL: Final = 0.01
_MOST_SCOPES: Final = 200


def odd_ranks(members: Sequence[Member], peers: Peers) -> tuple[Odd, ...]:
    """Return what stands out, by rank."""
    found: list[Odd] = []
    for mine in peers.among(undamaged(members)):
        group = [members[at] for at in mine]
        if len(group) > 1:  # a rank alone has no median
            found += _in_facts(group)
            found += _in_times(group) if len(group) > 2 else []  # ranks
    return tuple(sorted(found, key=lambda one: one.rank))


def _in_facts(group: Sequence[Member]) -> Iterator[Odd]:
    """Compare scope by scope, the smallest first: a difference is told where it is, not again around it."""
    facts = [_facts(member) for member in group]
    told: set[tuple[int, str, object]] = set()
    for scope in _scopes(facts):
        if one := _recorded_by_few(group, facts, scope):
            yield one
        for key in (*COUNTS, *LOOSE, *WORDS) if scope != _WHOLE else WORDS:
            values = [one.get(scope, {}).get(key) for one in facts]
            for at, middle, number in _unlike(values, loose=key in LOOSE):
                seen = values[at]
                if seen is None or (group[at].rank, key, _difference(seen, middle)) in told:
                    continue
                told.add((group[at].rank, key, _difference(seen, middle)))
                yield Odd(group[at].rank, scope, key, seen, middle, number)


def _facts(member: Member) -> Mapping[str, Mapping[str, Value]]:
    """Return a rank's facts; of several cycles the value that most of them have."""
    if len(member.files) == 1:
        return member.files[0].facts
    found: dict[str, dict[str, list[Value]]] = defaultdict(lambda: defaultdict(list))
    for file in member.files:
        for scope, facts in file.facts.items():
            for key, value in facts.items():
                found[scope][key].append(value)
    return {
        scope: {key: _commonest(values) for key, values in facts.items()} for scope, facts in found.items()
    }


def _commonest(values: Sequence[Value]) -> Value:
    counted = Counter(values)
    return min(counted, key=lambda value: (-counted[value], str(value)))


def _scopes(facts: Sequence[Mapping[str, Mapping[str, Value]]]) -> list[str]:
    """Return all scopes, annotations before steps before the whole, the shortest first."""
    lengths: dict[str, float] = {}
    for one in facts:
        for scope, values in one.items():
            wall = values.get("wall_time_us")
            lengths[scope] = max(
                lengths.get(scope, 0.0), float(wall) if isinstance(wall, int | float) else 0.0
            )
    return sorted(lengths, key=lambda scope: (scope == _WHOLE, scope == _STEP, lengths[scope], scope))


def _recorded_by_few(
    group: Sequence[Member], facts: Sequence[Mapping[str, Mapping[str, Value]]], scope: str
) -> Odd | None:
    """Return an annotation that one rank has and the others have not."""
    having = [at for at, one in enumerate(facts) if scope in one]
    if len(having) != 1 or max(map(len, facts)) >= _MOST_SCOPES:
        return None
    return Odd(group[having[0]].rank, scope, "annotation", "recorded", "not recorded", len(group) - 1)


def _difference(seen: Value, middle: Value) -> object:
    if isinstance(seen, int | float) and isinstance(middle, int | float):
        return seen - middle
    return (seen, middle)


def _unlike(values: Sequence[Value | None], *, loose: bool) -> Iterator[tuple[int, Value, int]]:
    """Yield the position of each value that differs, the majority's value, and how many have that."""
    known = [(at, _plain(value)) for at, value in enumerate(values) if value is not None]
    if len(known) < 2:  # ranks
        return
    if loose:
        yield from _unlike_numbers(known)
        return
    counted = Counter(value for _, value in known)
    if len(known) == 2:  # ranks, neither of them the odd one
        (_, first), (second_at, second) = known
        if first != second:
            yield second_at, first, 1
        return
    middle, number = min(counted.items(), key=lambda item: (-item[1], str(item[0])))
    if number >= _MAJORITY * len(known):
        yield from ((at, middle, number) for at, value in known if value != middle)


def _unlike_numbers(known: Sequence[tuple[int, Value]]) -> Iterator[tuple[int, Value, int]]:
    """Yield numbers that are clearly more than the median of the other ranks'."""
    numbers = [(at, value) for at, value in known if isinstance(value, int | float)]
    middle = median_low([value for _, value in numbers]) if numbers else 0
    allowed = max(_LOOSE_COUNT, _LOOSE_PART * middle)
    near = sum(abs(value - middle) <= allowed for _, value in numbers)
    if near >= _MAJORITY * len(numbers) or len(numbers) == 2:  # ranks
        yield from ((at, middle, near) for at, value in numbers if abs(value - middle) > allowed)


def _plain(value: Value) -> Value:
    """Return a value that is the same for lists in another order."""
    return tuple(sorted(value)) if isinstance(value, tuple | list) else value


def _in_times(group: Sequence[Member]) -> Iterator[Odd]:
    """Yield ops that take one rank's GPU longer than the spread of the others explains, per step."""
    times = [per_step(gpu_times_us, member) for member in group]
    least = _MATERIAL * median([sum(one.values()) for one in times])
    for op in sorted({op for one in times for op, us in one.items() if us >= least}):
        values = [one.get(op, 0.0) for one in times]
        middle = median_low(values)
        spread = 1.48 * median([abs(value - middle) for value in values])
        limit = middle + max(_SPREADS * spread, _TIME_PART * middle, least)
        near = sum(value <= limit for value in values)
        if near >= _MAJORITY * len(values):
            for at, value in enumerate(values):
                if value > limit:
                    yield Odd(group[at].rank, op, "gpu_time_us", round(value, 3), round(middle, 3), near)
