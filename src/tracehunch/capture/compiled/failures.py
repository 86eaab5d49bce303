"""What torch.compile raises: errors of the program's own operations, and code that it refuses to compile."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tracehunch.capture.compiled.lines import own_of_frames
from tracehunch.capture.program.record import advice
from tracehunch.errors import CaptureError

if TYPE_CHECKING:
    from tracehunch.capture.program.tape import Stopped, Tape

_COMPILER: Final = ("torch._dynamo", "torch._inductor", "torch._functorch")
_OPERATION: Final = "TorchRuntimeError"
"""What Dynamo raises where an operation of the program refuses its inputs, as it would without it."""

_CAUSE: Final = re.compile(r""": got (\w+)\((['"])(.*)\2\)$""", re.MULTILINE)
"""Class and message of what an operation itself raised, in the text of a compiler's error."""
_EXPLAINED: Final = re.compile(r"^\s*Explanation: (.+)$", re.MULTILINE)
_HINT: Final = re.compile(r"^\s*Hint: (.+)$", re.MULTILINE)
_VERBOSE: Final = "TORCHDYNAMO_VERBOSE=1 shows where"
_LONGEST: Final = 300


def of_compiler(error: BaseException) -> bool:
    """Whether the compiler raised an error, not the program."""
    return type(error).__module__.startswith(_COMPILER)


def failed(name: str, tape: Tape, error: BaseException) -> CaptureError | Stopped:
    """Return what to raise for an error of the compiler's.

    An operation that refuses its inputs is an error of the program `name`, as it is where nothing is
    compiled. All else is noted on the tape, with its line: it may be no error on a GPU.
    """
    line = own_of_frames(getattr(error, "real_stack", None) or ())
    if type(error).__name__ == _OPERATION:
        said = _of_operation(str(error))
        return CaptureError(f"{name} cannot run", f"{said} ({line})" if line else said, advice(said))
    hint = _HINT.search(str(error))
    return tape.stop(f"torch.compile fails: {_said(error)}", hint[1].strip() if hint else _VERBOSE, line)


def _of_operation(text: str) -> str:
    cause = _CAUSE.search(text)
    if cause is not None:
        return f"{cause[1]}: {cause[3].split(chr(92) + 'n')[0]}"[:_LONGEST]
    explained = _EXPLAINED.search(text)
    return f"RuntimeError: {explained[1] if explained else text.splitlines()[0]}"[:_LONGEST]


def _said(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = next((line for line in lines if "backend=" not in line), type(error).__name__)
    explained = _EXPLAINED.search(str(error))
    return (said if explained is None else f"{said}: {explained[1].strip().removesuffix('.')}")[:_LONGEST]
