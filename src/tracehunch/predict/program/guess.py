"""What a program's GPU trace will show, from the calls that it makes."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tracehunch.predict.environment import Environment
from tracehunch.predict.program.calls import Program
from tracehunch.predict.program.direct import direct_call
from tracehunch.predict.program.findings import Compiled, findings
from tracehunch.predict.program.model import CallGuess, ProgramGuess
from tracehunch.predict.program.one_call import guess_call
from tracehunch.predict.program.rows import module_rows, op_rows
from tracehunch.predict.program.sdpa_calls import sdpa_calls
from tracehunch.predict.program.totals import leading, totals
from tracehunch.predict.program.untold import cannot_tell

_DETERMINISTIC: Final = "deterministic"
_PRECISION: Final = "float32_matmul_precision"
_YES: Final = frozenset({"on", "true", "yes", "1"})


def guess_program(program: Program, env: Environment) -> ProgramGuess:
    """Return what is expected of a program on a GPU, with a version of PyTorch.

    Settings that the program itself made (deterministic algorithms, TF32) add to the environment's.
    """
    env = _as_set(env, program.settings)
    trains = any(call.phase == "backward" for call in program.calls)
    calls = (direct_call(call, trains=trains) or call for call in program.calls)
    return guess_of(program, env, tuple(guess_call(call, env) for call in calls))


def guess_of(
    program: Program, env: Environment, calls: tuple[CallGuess, ...], compiled: Compiled | None = None
) -> ProgramGuess:
    """Return the same from calls that were guessed before; some of a program's calls make a part of it.

    `compiled` says which of them torch.compile made.
    """
    by_op, whole = op_rows(calls, by_module=False), totals(calls, program.obstacles)
    found = findings(calls, program, env, whole, compiled)
    return ProgramGuess(
        program=program,
        env=env,
        calls=calls,
        ops=op_rows(calls, by_module=True),
        by_op=by_op,
        modules=module_rows(calls),
        totals=whole,
        leaders=leading(by_op),
        sdpa=sdpa_calls(calls, env),
        findings=tuple(one for one in found if not one.small),
        smaller=tuple(one for one in found if one.small),
        cannot_tell=cannot_tell(calls, program.obstacles),
    )


def _as_set(env: Environment, settings: Mapping[str, str]) -> Environment:
    deterministic = env.deterministic or settings.get(_DETERMINISTIC, "").lower() in _YES
    tf32 = env.tf32 or settings.get(_PRECISION, "highest") != "highest"
    return replace(env, deterministic=deterministic, tf32=tf32)
