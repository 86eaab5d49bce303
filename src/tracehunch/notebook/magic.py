"""``%%hunch``: a guess, then the cell under the profiler, then the verdict."""

from __future__ import annotations

import tempfile
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from IPython.core.error import StdinNotImplementedError, UsageError

from tracehunch.api import check
from tracehunch.capture.labelled import record_calls
from tracehunch.capture.recorder import Recording
from tracehunch.capture.torch_env import pick_machine
from tracehunch.errors import TracehunchError
from tracehunch.guess import Guess
from tracehunch.guess.hunch import read_hunch
from tracehunch.notebook.ask import ask, claims_of
from tracehunch.notebook.options import SCOPE, Options, parse, usage
from tracehunch.notebook.running import CellRaised, compile_body
from tracehunch.notebook.show import show_look, tell, tell_guess, tell_score

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.verdict import Look

_EXAMPLES: Final = {"cuda": "kernels=5 any_copies=0", "cpu": "leaf_ops=5 sdpa.backend=none"}


def magic_for(ip: Any) -> Callable[[str, str], None]:
    """Return the magic for one shell; traces live as long as the process, unless ``--trace`` names a file."""
    folder = tempfile.TemporaryDirectory(prefix="tracehunch-")
    numbers = count(1)

    def hunch(line: str, cell: str) -> None:
        __tracebackhide__ = True  # IPython then leaves this frame out of the tracebacks that it shows
        try:
            options = parse(line)
            body = compile_body(ip, line, cell)
            path = options.trace or Path(folder.name) / f"cell-{next(numbers)}.json.gz"
            raised = _guess_run_look(ip, partial(body.run, ip), options, path)
        except TracehunchError as error:
            raise UsageError(str(error)) from None
        if raised is not None:  # outside of any except, so that no error of ours is told as its context
            raise body.without_callers(raised)

    hunch.__doc__ = f"Guess first, then run the cell under PyTorch's profiler, then look.\n\n{usage()}"
    return hunch


def _guess_run_look(ip: Any, run: Callable[[], object], options: Options, path: Path) -> BaseException | None:
    """Take and seal the guess, run and record the cell, show its value and the verdict.

    Returns:
        What the cell raised.

    """
    guess = _guess(options, pick_machine("auto").kind)
    tell_guess(guess, scope=options.scope)
    recording = Recording(0, 0, options.steps, shapes=options.shapes, stacks=options.stacks)
    recorded = False
    try:
        for _ in range(options.warmup):
            run()
        recorded = True
        value = record_calls(run, path, SCOPE, recording, first=0)
    except CellRaised as stopped:
        if recorded:
            _show_until(stopped.error, guess, path)
        return stopped.error
    if value is not None:
        ip.displayhook(value)
    look = _show(guess, path)
    if options.name:
        ip.push({options.name: look})
    if options.asks and guess.claims:
        tell_score(guess, look)
    return None


def _guess(options: Options, device: str) -> Guess:
    """Take the claims from where the user wants them taken; none where nobody can be asked."""
    if options.hunch is not None:
        return read_hunch(options.hunch).guess
    if not options.asks:
        return Guess(claims_of(options.scope, options.words))
    try:
        return Guess(ask(options.scope, device, input, tell))
    except StdinNotImplementedError:
        tell(
            "No guess was taken, as this frontend has no prompt. Write it behind the magic, as "
            f"%%hunch {_EXAMPLES[device]}, or in a file: %%hunch --guess hunch.toml"
        )
        return Guess(())


def _show(guess: Guess, path: Path) -> Look:
    look = check(guess, path)
    show_look(look, str(path))
    return look


def _show_until(error: BaseException, guess: Guess, path: Path) -> None:
    """Show what ran until the cell raised; its error is shown next, whatever comes of this."""
    try:
        _show(guess, path)
    except TracehunchError as trouble:
        tell(str(trouble))
    else:
        tell(f"The cell raised {type(error).__name__}; above is what ran until then.")
