"""Claims to check a real trace with: what is sure exactly, what is not as a range."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from tracehunch.guess.model import Claim, Guess
from tracehunch.predict.program.known import known_of
from tracehunch.predict.program.model import CallGuess, ProgramGuess, Totals
from tracehunch.predict.program.sdpa_calls import backend_of
from tracehunch.predict.program.totals import totals

EVERY: Final = ("*", "whole")
"""Scopes that are all of a program."""

_WHO: Final = "expert"
_UNIT: Final = "count"
_UNSURE: Final = "some calls' kernels are less certain"
_CLEAR: Final = 1.3
_CALLED: Final = {
    "aten::bmm": "aten::matmul", "aten::_softmax": "aten::softmax", "aten::_to_copy": "aten::to",
    "aten::native_layer_norm": "aten::layer_norm", "aten::_log_softmax": "aten::log_softmax",
}  # fmt: skip
"""Op below autograd -> what a program calls for it, where that is one op."""
_LAYERS: Final = {"aten::mm": "aten::linear", "aten::addmm": "aten::linear"}
"""The same inside an `nn.Linear`."""


def guess_to_check(guess: ProgramGuess) -> Guess:
    """Return all claims: of every annotation where the program has none of its own, else of each of these."""
    scopes = scopes_of(guess)
    claims = tuple(claim for scope in scopes or (EVERY[0],) for claim in claims_of(guess, scope))
    known = {one for scope in scopes or (EVERY[0],) for one in known_of(guess, scope)}
    return Guess(claims, _context(guess), tuple(sorted(known)))


def _context(guess: ProgramGuess) -> dict[str, str]:
    """Return what the claims were made for; a trace names the GPU and the version in words of its own."""
    gpu, version = guess.env.gpu, guess.env.torch_name
    made = {"program": guess.program.name, "guessed_for": f"torch {version}"}
    if gpu is not None:
        made |= {"guessed_for": f"{gpu.name}, torch {version}", "compute_capability": gpu.compute_capability}
    return made


def scopes_of(guess: ProgramGuess) -> tuple[str, ...]:
    """Return the outermost annotations of the program, in the order of their first calls."""
    outer = (one.call.scopes[0] for one in guess.calls if one.call.scopes)
    return tuple(dict.fromkeys(outer))


def claims_of(guess: ProgramGuess, scope: str = "*") -> tuple[Claim, ...]:
    """Return what is expected in a scope: "*" or "whole" for all of the program, or an annotation's name.

    A scope without calls has no claims.
    """
    inside = scope in EVERY
    calls = [one for one in guess.calls if inside or scope in one.call.scopes]
    if not calls:
        return ()
    found = totals(calls, guess.program.obstacles if inside else ())
    return (*_counts(found, scope), *_backend(calls, found, scope), *_dominant(calls, found, scope),
            *_time(found, scope))  # fmt: skip


def _counts(found: Totals, scope: str) -> Iterator[Claim]:
    sums = found.amounts
    for key, number in (("kernels", sums.kernels), ("copies", sums.copies), ("memsets", sums.memsets)):
        if found.at_least:
            why = (
                f"at least: {sums.untold} calls could not be told"
                if sums.untold
                else "at least: see cannot_tell"
            )
            yield Claim(key, ">=", number, scope, _WHO, why, "medium", _UNIT)
            continue
        low, high = found.ranges[key]
        if low == high:
            yield Claim(key, "==", number, scope, _WHO, "from shapes, one call after the other", unit=_UNIT)
        else:
            yield Claim(key, "in", (low, high), scope, _WHO, _UNSURE, "medium", _UNIT)


def _backend(calls: Sequence[CallGuess], found: Totals, scope: str) -> Iterator[Claim]:
    if found.stopped:
        return  # what follows may call SDPA otherwise
    picked = [one.sdpa for one in calls if one.sdpa is not None and one.call.phase != "backward"]
    backends = [backend_of(one) for one in picked]
    told = tuple(dict.fromkeys(name for name in backends if name is not None and name != "error"))
    if not backends:
        yield Claim("sdpa.backend", "==", "none", scope, _WHO, "no SDPA call is made", unit="text")
    elif None not in backends and "error" not in backends:
        expected: str | tuple[str, ...] = told[0] if len(told) == 1 else told
        yield Claim(
            "sdpa.backend", "==", expected, scope, _WHO, "the dispatcher's rules pick it", unit="text"
        )


def _dominant(calls: Sequence[CallGuess], found: Totals, scope: str) -> Iterator[Claim]:
    """Claim the op that leads, where it clearly does and its name as the program calls it is known."""
    if found.stopped or found.amounts.untimed or any(one.call.phase != "forward" for one in calls):
        return  # what a backward calls is named after the forward's ops only in part
    weight: Counter[str] = Counter()
    for one in calls:
        if one.activities.time is not None:
            weight[called(one)] += round(one.activities.time.mid_us * 1e3)  # nanoseconds
    ranked = weight.most_common(2)
    clear = len(ranked) == 1 or (len(ranked) > 1 and ranked[0][1] >= _CLEAR * ranked[1][1])
    if ranked and clear and ranked[0][0] not in _LAYERS:
        yield Claim(
            "dominant", "leads", (ranked[0][0],), scope, _WHO, "by predicted GPU time", "medium", "text"
        )


def called(one: CallGuess) -> str:
    """Return the op that a program calls for one that PyTorch's dispatcher sees."""
    op = one.call.op
    if one.call.module_type == "Linear" and op in _LAYERS:
        return _LAYERS[op]
    return _CALLED.get(op, op)


def _time(found: Totals, scope: str) -> Iterator[Claim]:
    time = found.amounts.time
    if time is None:
        return
    low, high = float(f"{time.low_us:.4g}"), float(f"{time.high_us:.4g}")
    if found.amounts.untimed or found.at_least:
        yield Claim("gpu_time", ">=", low, scope, _WHO, "at least: some calls have no time", "low", "us")
    else:
        yield Claim(
            "gpu_time", "in", (low, high), scope, _WHO, "the sum of all calls' ranges", "medium", "us"
        )
