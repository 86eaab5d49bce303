"""dtype-round-trip: a tensor cast to another type and back for nothing, or a norm written out in between."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from tracehunch.predict.program.findings._run import (
    Run,
    at_line,
    grouped,
    kind_of_module,
    launches,
    line_of,
    modules_of,
    scope_of,
    us_of,
)
from tracehunch.predict.program.model import CallGuess, Foreseen
from tracehunch.units import join, plural

ID: Final = "dtype-round-trip"
CAST: Final = "aten::_to_copy"
BITS: Final = {"fp64": 64, "fp32": 32, "fp16": 16, "bf16": 16}
_TORCH: Final = {
    "fp64": "torch.float64",
    "fp32": "torch.float32",
    "fp16": "torch.float16",
    "bf16": "torch.bfloat16",
}
_REACH: Final = 16
"""Calls that launch something, from a cast to the one back."""
_SAME_RESULT: Final = """
    relu gelu silu mish elu celu selu leaky_relu hardtanh hardswish hardsigmoid sigmoid tanh softplus neg abs
    exp log sqrt rsqrt reciprocal sin cos mul div add sub rsub clamp clamp_min clamp_max pow square
    native_dropout _softmax _log_softmax
"""
_ALONE: Final = frozenset(f"aten::{name}{end}" for name in _SAME_RESULT.split() for end in ("", "_"))
"""Ops that compute in float32 inside whatever the type of their only tensor, and round the result once."""
_SOFTMAX: Final = ("aten::_softmax", "aten::_log_softmax")
_MEANS: Final = frozenset(
    f"aten::{name}" for name in ("mean", "sum", "var", "var_mean", "std", "linalg_vector_norm")
)
_ROOTS: Final = frozenset(
    f"aten::{name}" for name in ("rsqrt", "sqrt", "rsqrt_", "sqrt_", "linalg_vector_norm")
)

Kind = Literal["nothing", "one op", "norm"]


@dataclass(frozen=True, slots=True)
class Trip:
    """A cast, the calls up to the cast back, and which of those use what the first made."""

    calls: tuple[CallGuess, ...]
    kind: Kind
    used_by: tuple[str, ...]

    @property
    def casts(self) -> tuple[CallGuess, CallGuess]:
        """There and back."""
        return self.calls[0], self.calls[-1]

    @property
    def types(self) -> str:
        """As ``bf16 -> fp32 -> bf16``."""
        out, back = (types_of(one) for one in self.casts)
        return f"{out[0]} -> {out[1]} -> {back[1]}"


def round_trips(run: Run) -> Iterator[Foreseen]:
    """Report casts that another one undoes, then norms between such casts."""
    trips = find_trips(run.calls)
    plain = [trip for trip in trips if trip.kind != "norm"]
    by_types: dict[tuple[str, str], list[Trip]] = {}
    for trip in plain:
        by_types.setdefault((kind_of_module(trip.calls[0].call.module), trip.types), []).append(trip)
    for same in by_types.values():
        yield from _for_nothing(run, same)
    norms = [trip for trip in trips if trip.kind == "norm"]
    if norms:
        yield from _norms(run, norms)


def types_of(one: CallGuess) -> tuple[str, str]:
    """Return what a cast is from and to."""
    return one.call.tensors[0].dtype, one.call.outputs[0].dtype


def is_cast(one: CallGuess) -> bool:
    """Tell a cast between floating-point types on the GPU, of more than a number."""
    call = one.call
    if call.op != CAST or not call.tensors or not call.outputs or call.outputs[0].numel <= 1:
        return False
    source, target = types_of(one)
    return source != target and source in BITS and target in BITS and launches(one) > 0


def find_trips(calls: Sequence[CallGuess]) -> list[Trip]:
    """Find each cast of the forward that a later one undoes; no cast is in two."""
    work = [one for one in calls if launches(one) and one.call.phase == "forward"]
    taken: set[int] = set()
    found = []
    for at, one in enumerate(work):
        if at in taken or not is_cast(one):
            continue
        trip = None if feeds_softmax(work, at) else _back_from(work, at, taken)
        if trip is not None:
            found.append(trip)
    return found


def feeds_softmax(work: Sequence[CallGuess], at: int) -> bool:
    """Tell a cast that softmax(dtype=) makes: softmax follows at once, and a cast back after it."""
    made = work[at].call.outputs[0]
    if at + 2 >= len(work) or work[at + 1].call.op not in _SOFTMAX:
        return False
    taken = work[at + 1].call.tensors[0]
    if (taken.numel, taken.dtype) != (made.numel, made.dtype):
        return False
    back = work[at + 2]
    return is_cast(back) and types_of(back) == types_of(work[at])[::-1]


def _back_from(work: Sequence[CallGuess], at: int, taken: set[int]) -> Trip | None:
    source, target = types_of(work[at])
    size = work[at].call.outputs[0].numel
    used_by: list[str] = []
    users = 0
    for later in range(at + 1, min(at + 1 + _REACH, len(work))):
        one = work[later]
        undoes = later not in taken and is_cast(one) and types_of(one) == (target, source)
        if undoes and one.call.outputs[0].numel == size:
            kind = _kind(work[at : later + 1], used_by, users)
            if kind is None:
                return None
            taken.add(later)
            return Trip(tuple(work[at : later + 1]), kind, tuple(dict.fromkeys(used_by)))
        if any(given.numel == size and given.dtype == target for given in one.call.tensors):
            used_by.append(one.call.op)
            users += 1
    return None


def _kind(inside: Sequence[CallGuess], used_by: Sequence[str], users: int) -> Kind | None:
    if not used_by:
        return "nothing"
    source, target = types_of(inside[0])
    names = {one.call.op for one in inside[1:-1]}
    wider = BITS[target] > BITS[source]
    if wider and names & _MEANS and names & _ROOTS:
        return "norm"
    alone = users == 1 and used_by[0] in _ALONE and _one_tensor(inside[1:-1], used_by[0])
    return "one op" if wider and alone else None


def _one_tensor(inside: Sequence[CallGuess], op: str) -> bool:
    one = next(one for one in inside if one.call.op == op)
    return sum(given.numel != 1 for given in one.call.tensors) == 1


def _for_nothing(run: Run, trips: Sequence[Trip]) -> Iterator[Foreseen]:
    casts = [cast for trip in trips for cast in trip.casts]
    spent = us_of(casts)
    if not spent:
        return
    first = trips[0]
    source, target = types_of(first.calls[0])
    same = BITS[target] > BITS[source]
    names = sorted({op for trip in trips for op in trip.used_by})
    between = f"at most {join(names)}" if names else "nothing"
    effect = (
        "The second cast gives back the values that the first was given, so neither changes anything."
        if same
        else "The first cast rounds the values, and the second cannot bring back what is lost."
    )
    if names:
        effect += " The op in between computes in float32 inside and rounds once, whichever type it is given."
    yield Foreseen(
        id=ID,
        scope=scope_of(casts),
        severity=run.severity(spent, spent),
        confidence="medium",
        time_at_stake_us=spent,
        summary=f"{plural(len(trips), 'tensor')} cast {first.types} with {between} in between: "
        f"{plural(len(casts), 'cast')}, {run.of_gpu(spent)}{at_line(casts)}",
        cause=f"{effect} They are paired by order and size: whether other code uses the copy, look and see. "
        "At stake is the time of the casts.",
        fix=f"Drop both casts: x.to({_TORCH[target]}).to({_TORCH[source]}) is x."
        if same
        else f"Drop both casts, unless rounding to {_TORCH[target]} is what you want.",
        modules=modules_of(casts),
        line=line_of(casts),
        subject=first.types,
        count=len(trips),
        small=not run.is_noticeable(spent),
    )


def _norms(run: Run, trips: Sequence[Trip]) -> Iterator[Foreseen]:
    inside = [one for trip in trips for one in trip.calls]
    spent = us_of(inside) - us_of([trip.calls[-1] for trip in trips])
    if not spent:
        return
    source, target = types_of(trips[0].calls[0])
    kinds = grouped([trip.calls[0] for trip in trips], lambda one: kind_of_module(one.call.module))
    each = plural(round(sum(launches(one) for one in inside) / len(trips), 1), "kernel")
    yield Foreseen(
        id=ID,
        scope=scope_of(inside) if len(kinds) == 1 else scope_of([trip.calls[0] for trip in trips]),
        severity="note",
        confidence="medium",
        time_at_stake_us=spent,
        summary=f"{plural(len(trips), 'norm')} written by hand in {target} between casts, {each} each: "
        f"{run.of_gpu(us_of(inside))}{at_line(inside)}",
        cause=f"The casts to {target} and back to {source} keep the norm precise and are right, but "
        "each step "
        "reads and writes the whole tensor. A fused norm computes in float32 inside and does so once. At "
        "stake "
        "is the time of all steps less that of the casts back, about what a fused norm takes.",
        fix="torch.nn.RMSNorm (F.rms_norm), or torch.nn.LayerNorm if the mean is subtracted: one kernel in "
        "recent releases, with 16-bit input and output; or torch.compile the norm.",
        modules=modules_of(inside),
        line=line_of(inside),
        subject="norm",
        count=len(trips),
        small=not run.is_material(spent),
    )
