"""Times that were claimed for other hardware than a trace is from: refused, for they do not carry over."""

from collections.abc import Mapping
from dataclasses import replace

from tracehunch.errors import GuessError
from tracehunch.guess.context import HARDWARE, context_of, difference
from tracehunch.guess.model import Guess
from tracehunch.guess.scopes import STEP
from tracehunch.trace.model import Trace
from tracehunch.tree.names import STEP as IN_TRACE
from tracehunch.verdict import CannotTell


def settle_times(guess: Guess, trace: Trace) -> tuple[Guess, tuple[CannotTell, ...]]:
    """Split a guess into the claims that may be held against this trace, and the times that may not be.

    A guess whose context names no hardware is taken as it is: its author gave the times on purpose.

    Raises:
        GuessError: it claims times, and the trace is from other hardware.

    """
    times = [claim for claim in guess.claims if claim.unit == "us"]
    wanted = [name for name in HARDWARE if name in guess.context]
    if not times or not wanted:
        return guess, ()
    for name in wanted:
        if (pair := difference(guess.context, trace, name)) is not None:
            raise GuessError(
                f"the guess claims times of {pair[0]}, but {trace.label} is from {pair[1]}",
                "times do not carry over to other hardware",
                "make a baseline there (tracehunch guess --from TRACE --times), or remove the times",
            )
    if "device" in context_of(trace):
        return guess, ()
    reason = f"the trace names no GPU, and the time was claimed for {_hardware(guess.context)}"
    untold = tuple(CannotTell(claim.key, _in_trace(claim.scope), reason) for claim in times)
    return replace(guess, claims=tuple(claim for claim in guess.claims if claim.unit != "us")), untold


def _hardware(context: Mapping[str, str]) -> str:
    """Name the GPU of a guess: one that was made without a trace says which of the known ones it is for."""
    names = (context.get("device"), context.get("gpu"))
    return next(filter(None, names), f"compute capability {context.get('compute_capability', '')}")


def _in_trace(scope: str) -> str:
    """Return what the scope of a claim is called in traces, as the other claims are told."""
    return IN_TRACE if scope in STEP else scope
