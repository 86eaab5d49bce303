"""A whole program, guessed from the calls it makes: what its GPU trace will show."""

from tracehunch.predict.program.calls import SDPA, Obstacle, OpCall, Phase, Program
from tracehunch.predict.program.claims import claims_of, guess_to_check, scopes_of
from tracehunch.predict.program.guess import guess_of, guess_program
from tracehunch.predict.program.model import (
    Amounts,
    CallGuess,
    Foreseen,
    Hazard,
    HostTime,
    Leader,
    ModuleRow,
    OpPart,
    OpRow,
    ProgramGuess,
    SdpaGuess,
    Totals,
    Untold,
)

__all__ = [
    "SDPA", "Amounts", "CallGuess", "Foreseen", "Hazard", "HostTime", "Leader", "ModuleRow", "Obstacle",
    "OpCall", "OpPart", "OpRow", "Phase", "Program", "ProgramGuess", "SdpaGuess", "Totals", "Untold",
    "claims_of", "guess_of", "guess_program", "guess_to_check", "scopes_of",
]  # fmt: skip
