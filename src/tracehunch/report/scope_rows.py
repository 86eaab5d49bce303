"""The scopes of a Look as cells of a table, and which of them a report lists."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tracehunch.report.origin import vendor
from tracehunch.report.roofline_text import scope_text
from tracehunch.units import count, join, percent, plural, printable, time_column, time_range_us

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tracehunch.facts.model import ScopeFacts
    from tracehunch.report.summary import Selection
    from tracehunch.tree import Scope
    from tracehunch.verdict import Look

_SPREAD_WORTH_SAYING: Final = 1.25  # highest over lowest: clocks alone move times by a few percent


_BESIDES: Final = 2  # scopes listed besides as many as kernels are
_ANNOTATIONS: Final = 30  # of the user's own so many at least
_FRAMEWORKS: Final = 4
_MODULES: Final = 4  # so many at least, however many annotations there are
_LARGE: Final = 0.1  # share of the steps' time
_ORDER: Final = ("annotation", "framework", "step", "module", "whole")
_TIMES: Final = ("gpu_time", "cpu_time", "wall_time")


@dataclass(frozen=True, slots=True)
class ScopeRow:
    """One scope's cells; "" where the trace cannot show it."""

    name: str
    kind: str
    calls: str
    kernels: str
    copies: str
    memsets: str
    leaf_ops: str
    gpu_time: str
    cpu_time: str
    wall_time: str
    gpu_idle: str
    traits: str
    limit: str
    spread: str


def shown_scopes(look: Look, selection: Selection) -> tuple[list[ScopeFacts], str]:
    """Return the scopes to list, the user's own first and the whole last, and what is folded away.

    What the user named is kept before what was named automatically: annotations, then steps and the whole,
    then frameworks' scopes that hold much of the time, then modules.
    """
    scopes = sorted(look.facts.scopes, key=lambda scope: _ORDER.index(scope.scope.kind))
    if selection.scopes:
        return [scope for scope in scopes if scope.scope.name in selection.scopes], ""
    if selection.all_scopes:
        return scopes, ""
    kept = _kept(scopes, max(selection.top, 1) + _BESIDES)
    folded = [scope for scope in scopes if scope not in kept]
    return kept, _folded_text(folded)


def _kept(scopes: Sequence[ScopeFacts], room: int) -> list[ScopeFacts]:
    def of(*kinds: str) -> list[ScopeFacts]:
        found = [scope for scope in scopes if scope.scope.kind in kinds]
        return sorted(found, key=_weight, reverse=True)

    annotations = of("annotation")[: max(room, _ANNOTATIONS)]
    frameworks = [scope for scope in of("framework") if _is_large(scope, scopes)][:_FRAMEWORKS]
    first = [*annotations, *of("step", "whole"), *frameworks]
    modules = of("module")[: max(room - len(first), min(room, _MODULES))]
    kept = {id(scope) for scope in (*first, *modules)}
    return [scope for scope in scopes if id(scope) in kept]


def _is_large(scope: ScopeFacts, scopes: Sequence[ScopeFacts]) -> bool:
    """Whether a scope holds a large share of the steps' time, on the host or the GPU; else of the whole's."""
    for kind in ("step", "whole"):
        against = [one for one in scopes if one.scope.kind == kind]
        if against:
            shares = (_total_us(scope, key) / (_total_us(against[0], key) or math.inf) for key in _TIMES)
            return any(one >= _LARGE for one in shares)
    return False


def _total_us(scope: ScopeFacts, key: str) -> float:
    value = scope.value(key)
    return float(value) * len(scope.scope.calls) if isinstance(value, int | float) else 0.0


def _folded_text(folded: Sequence[ScopeFacts]) -> str:
    if not folded:
        return ""
    kinds: Counter[str] = Counter(scope.scope.kind for scope in folded)
    words = {"module": "modules", "framework": "of frameworks", "annotation": "annotations"}
    which = join([f"{count(kinds[kind])} {word}" for kind, word in words.items() if kinds[kind]])
    return f"{plural(len(folded), 'scope')} folded ({which}); --all-scopes lists them"


def scope_rows(look: Look, shown: Sequence[ScopeFacts]) -> list[ScopeRow]:
    """Return the cells of each scope; a module inside another that is shown stands indented below it.

    A column of times has one unit.
    """
    modules = [scope.scope.name for scope in shown if scope.scope.kind == "module"]
    unit = "matrix cores" if vendor(look.facts.tree.trace) == "amd" else "tensor cores"
    times = {key: time_column([_us(scope, key) for scope in shown]) for key in _TIMES}
    return [
        _scope_row(scope, _indented(scope.scope, modules), unit, {key: times[key][at] for key in _TIMES})
        for at, scope in enumerate(shown)
    ]


def usual_traits(rows: Sequence[ScopeRow]) -> str:
    """Return what most scopes have in common, to be said once; "" where no two have anything."""
    traits = Counter(row.traits for row in rows if row.traits).most_common(1)
    return traits[0][0] if traits and (traits[0][1] > 1 or len(rows) == 1) else ""


def _indented(scope: Scope, modules: Sequence[str]) -> str:
    around = [name for name in modules if scope.kind == "module" and scope.name.startswith(f"{name}/")]
    rest = scope.name[len(max(around, key=len)) + 1 :] if around else scope.name
    return "  " * len(around) + printable(rest)


def _scope_row(scope: ScopeFacts, name: str, matrix_unit: str, times: Mapping[str, str]) -> ScopeRow:
    return ScopeRow(
        name=name,
        kind=scope.scope.kind,
        calls=count(len(scope.scope.calls)),
        kernels=_fact(scope, "kernels"),
        copies=_fact(scope, "copies"),
        memsets=_fact(scope, "memsets"),
        leaf_ops=_fact(scope, "leaf_ops"),
        gpu_time=times["gpu_time"],
        cpu_time=times["cpu_time"],
        wall_time=times["wall_time"],
        gpu_idle=_fact(scope, "gpu_idle"),
        traits=_traits(scope, matrix_unit),
        limit=scope_text(scope),
        spread=_spread(scope),
    )


def _fact(scope: ScopeFacts, key: str) -> str:
    fact = scope.facts.get(key)
    if fact is None or not isinstance(fact.value, int | float):
        return ""
    match fact.unit:
        case "percent":
            return percent(fact.value)
        case "ratio":
            return percent(100 * fact.value)
        case _:
            return count(fact.value)


def _us(scope: ScopeFacts, key: str) -> float | None:
    value = scope.value(key)
    return float(value) if isinstance(value, int | float) else None


def _traits(scope: ScopeFacts, matrix_unit: str) -> str:
    backend, dtype, cores = (scope.value(key) for key in ("sdpa.backend", "dtype", "tensor_cores"))
    words = []
    if backend is not None and backend != "none":
        words.append(f"SDPA {_words(backend)}")
    if dtype is not None:
        words.append(_words(dtype))
    if cores in ("used", "idle", "mixed"):
        words.append(f"{matrix_unit} {cores}")
    return printable(", ".join(words))


def _words(value: object) -> str:
    return join([str(one) for one in value]) if isinstance(value, tuple) else str(value)


def _spread(scope: ScopeFacts) -> str:
    """Which of the shown facts differ between calls by more than clocks explain."""
    parts = []
    for key, label in (
        ("kernels", "kernels"),
        ("copies", "copies"),
        ("gpu_time", "GPU time"),
        ("wall_time", "wall"),
    ):
        fact = scope.facts.get(key)
        if fact is None or fact.low is None or fact.high is None or fact.low == fact.high:
            continue
        if fact.unit == "count":
            parts.append(f"{label} {count(fact.low)}-{count(fact.high)}")
        elif fact.low <= 0 or fact.high / fact.low > _SPREAD_WORTH_SAYING:
            parts.append(f"{label} {time_range_us(fact.low, fact.high)}")
    return ", ".join(parts)


def _weight(scope: ScopeFacts) -> float:
    """Return what makes a scope worth its line: time on the GPU, else on the wall."""
    for key in ("gpu_time", "wall_time", "cpu_time"):
        value = scope.value(key)
        if isinstance(value, int | float) and value > 0:
            return float(value) * len(scope.scope.calls)
    return 0.0
