"""hidden-copy and layout-copy: copies inside ops about something else, and copies that are asked for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from tracehunch.predict.program.findings._run import (
    WHOLE,
    Run,
    at_line,
    launches,
    line_of,
    modules_of,
    scope_of,
    us_of,
)
from tracehunch.predict.program.findings.casts import CAST, feeds_softmax, find_trips, is_cast
from tracehunch.predict.program.findings.fixes import (
    AUTOCAST,
    HIDDEN,
    ON_REQUEST,
    Remedy,
)
from tracehunch.predict.program.model import CallGuess, Foreseen
from tracehunch.predict.program.transfers import crosses
from tracehunch.units import plural

COPY: Final = "hidden-copy"
LAYOUT: Final = "layout-copy"
_CLONE: Final = "aten::clone"
_VIEWED: Final = "aten::_unsafe_view"
_PRODUCTS: Final = ("aten::bmm", "aten::mm", "aten::addmm", "aten::baddbmm")
_ASKED: Final = ("aten::cat", "aten::copy_", "aten::index", "aten::repeat", _CLONE)
_CONTIGUOUS: Final = "contiguous"
_OF_MATMUL: Final = (_VIEWED, _CLONE, "aten::expand", "aten::view")
_AHEAD: Final = 10
"""Calls after a copy among which the product that it is for is looked for."""
_OF_BACKWARD: Final = (
    CAST,
    _CLONE,
    "aten::copy_",
    "aten::cat",
    "aten::slice_backward",
    "aten::select_backward",
)


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy, and the op that the program called for it as far as the calls around it tell."""

    one: CallGuess
    called: str
    id: str
    asked: bool


def copies(run: Run) -> Iterator[Foreseen]:
    """Report copies by the op that was called and the kind of module."""
    groups: dict[tuple[str, str, bool], list[Copy]] = {}
    for copy in find_copies(run.calls):
        groups.setdefault((copy.id, copy.called, copy.asked), []).append(copy)
    for (finding, called, asked), same in groups.items():
        yield from _finding(run, finding, called, [copy.one for copy in same], asked=asked)
    yield from _of_autograd(run)


def _of_autograd(run: Run) -> Iterator[Foreseen]:
    """Report the copies that the backward makes."""
    backward = [one for one in run.calls if one.call.phase == "backward" and one.call.op in _OF_BACKWARD]
    same = [one for one in backward if launches(one) and not _is_number(one)]
    spent = us_of(same)
    if not spent:
        return
    yield Foreseen(
        id=COPY,
        scope=WHOLE,
        severity="note",
        confidence="high",
        time_at_stake_us=spent,
        summary=f"autograd makes {plural(len(same), 'copy', 'copies')}, {run.of_gpu(spent)}",
        cause="The backward of casts, reshapes, slices and of attention lays out or casts gradients. At "
        "stake is "
        "the time of the copies.",
        fix="They go with the forward ops that cause them: fewer casts and reshapes of non-contiguous "
        "tensors in "
        "the forward, gradients of the layout the backward op reads.",
        subject="autograd",
        count=len(same),
        small=not run.is_material(spent),
    )


def find_copies(calls: Sequence[CallGuess]) -> Iterator[Copy]:
    """Yield the copies of the forward; casts that are part of a round trip are left to that."""
    trips = {id(one) for trip in find_trips(calls) for one in trip.calls}
    forward = [one for one in calls if one.call.phase == "forward"]
    work = [one for one in forward if launches(one)]
    to_softmax = {id(one) for at, one in enumerate(work) if is_cast(one) and feeds_softmax(work, at)}
    for at, one in enumerate(forward):
        if not launches(one) or id(one) in trips or crosses(one.call) or _is_number(one):
            continue
        if id(one) in to_softmax:
            yield Copy(one, "aten::softmax", COPY, asked=False)
            continue
        found = _copy(one, forward[at + 1 : at + 1 + _AHEAD])
        if found is not None:
            yield found


def _copy(one: CallGuess, following: Sequence[CallGuess]) -> Copy | None:
    op = one.call.op
    if op == _CLONE and following and following[0].call.op == _VIEWED:
        return Copy(
            one, "aten::matmul" if _is_operand(one, following) else "aten::reshape", COPY, asked=False
        )
    if op == _CLONE:
        lays_out = one.call.options.get("memory_format") == _CONTIGUOUS or _changes_layout(one)
        return Copy(one, "aten::contiguous" if lays_out else _CLONE, LAYOUT if lays_out else COPY, asked=True)
    if op == CAST:
        return Copy(one, "torch.autocast" if one.call.autocast else "aten::to", COPY, asked=True)
    if op in _ASKED:
        return Copy(one, op, COPY, asked=True)
    inside = [part for part in one.parts if part.op == "aten::copy_"]
    return Copy(one, op, COPY, asked=False) if inside and op in HIDDEN else None


def _is_operand(one: CallGuess, following: Sequence[CallGuess]) -> bool:
    """Whether a product takes a copy next, with nothing between but views and copies of matmul's."""
    size = one.call.outputs[0].numel if one.call.outputs else 0
    for other in following:
        if other.call.op in _PRODUCTS:
            return any(given.numel == size for given in other.call.tensors)
        if other.call.op not in _OF_MATMUL:
            return False
    return False


def _changes_layout(one: CallGuess) -> bool:
    if not one.call.outputs or not one.call.tensors:
        return False
    source, made = one.call.tensors[0], one.call.outputs[0]
    return source.strides != made.strides


def _is_number(one: CallGuess) -> bool:
    return all(given.numel <= 1 for given in (*one.call.tensors, *one.call.outputs))


def _spent(calls: Sequence[CallGuess], called: str) -> float:
    """Return the time of the copies themselves: of an op that does more, of that part."""
    if called not in HIDDEN or called in ("aten::reshape", "aten::matmul", "aten::softmax"):
        return us_of(calls)
    parts = [part for one in calls for part in one.parts if part.op == "aten::copy_"]
    return sum(part.activities.time.mid_us for part in parts if part.activities.time is not None)


def _finding(
    run: Run, finding: str, called: str, same: Sequence[CallGuess], *, asked: bool
) -> Iterator[Foreseen]:
    spent = _spent(same, called)
    if not spent:
        return
    worth = run.is_noticeable(spent) if not asked or finding == LAYOUT else run.is_material(spent)
    advice = _advice(called, asked=asked)
    number = plural(len(same), "copy", "copies")
    made = f"{called}, called by the program, makes {number}" if asked else f"{called} hides {number}"
    if called == "torch.autocast":
        made = f"torch.autocast casts what ops are given: {number}"
    elif finding == LAYOUT:
        made = f"{called}, called by the program, lays tensors out anew: {number}"
    yield Foreseen(
        id=finding,
        scope=scope_of(same),
        severity="note" if asked or not advice.sure else run.severity(spent, spent),
        confidence="high" if asked else "medium",
        time_at_stake_us=spent,
        summary=f"{made}, {run.of_gpu(spent)}{at_line(same)}",
        cause=f"{called} {advice.cause}. At stake is the time of the copies."
        if not asked
        else f"{advice.cause} At stake is their time, if they can be done without.",
        fix=advice.fix,
        modules=modules_of(same),
        line=line_of(same),
        subject=called,
        count=len(same),
        small=not worth,
    )


def _advice(called: str, *, asked: bool) -> Remedy:
    if called == "torch.autocast":
        return AUTOCAST
    if asked:
        fix = ON_REQUEST.get(called, "produce the data where and as it is needed")
        return Remedy("The program asks for these copies by name.", f"If they can: {fix}.")
    return HIDDEN[called]
