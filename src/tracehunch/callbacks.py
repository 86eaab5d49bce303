"""Callbacks for training frameworks: record a few steps, look at them, and do nothing afterwards.

A step is one update of the parameters, however many batches it took. Each framework is loaded when its
callback is made. Under distributed training each rank writes a trace of its own (``train_rank3.json.gz``),
and only the main process looks and prints.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from tracehunch.capture.frameworks.training import Plan
from tracehunch.capture.recorder import Recording
from tracehunch.guess import Guess
from tracehunch.guess.written import Written, guess_of

if TYPE_CHECKING:
    import os

    from tracehunch.verdict import Look


class Options(TypedDict, total=False):
    """What is recorded: after ``skip`` steps (1) and ``warmup`` steps of the profiler (1), ``steps`` (3).

    ``shapes`` of tensors (True), Python ``stacks`` and modules (False), allocations (``memory``, False).
    """

    skip: int
    warmup: int
    steps: int
    shapes: bool
    stacks: bool
    memory: bool


def for_transformers(
    path: str | os.PathLike[str] = "train.json.gz",
    *,
    guess: Written | None = None,
    tell: bool = True,
    **options: Unpack[Options],
) -> Any:
    """Return a ``TrainerCallback``: ``Trainer(..., callbacks=[for_transformers(guess={"kernels": 902})])``.

    Args:
        path: where the trace goes (.json or .json.gz).
        guess: claims about a step (``{"kernels": 902, "gpu_time": "< 40ms"}``), a Guess, or a hunch.toml.
        tell: look at the trace when it is written, and print what was seen; ``.look`` keeps it.
        options: see ``Options``.

    If the training raises and the program goes on, ``with callback: trainer.train()`` writes the trace at
    once; else it is written when the program ends.

    Raises:
        CaptureError: transformers is not installed, or the options make no sense.
        GuessError: the guess cannot be understood.

    """
    from tracehunch.capture.frameworks.transformers import trainer_callback  # noqa: PLC0415  # one framework a use

    return trainer_callback(_plan(path, guess, options, tell=tell))


def for_accelerate(
    path: str | os.PathLike[str] = "train.json.gz",
    *,
    guess: Written | None = None,
    tell: bool = True,
    **options: Unpack[Options],
) -> Any:
    """Return a ``ProfileKwargs``: ``with accelerator.profile(for_accelerate()) as prof: ...``.

    Steps are counted by themselves, at the optimizer's updates; ``prof.step()`` counts only where there are
    none (inference). ``prof.look`` keeps what was seen. Arguments and errors as ``for_transformers``.
    """
    from tracehunch.capture.frameworks.accelerate import profile_handler  # noqa: PLC0415  # as above

    return profile_handler(_plan(path, guess, options, tell=tell))


def for_lightning(
    path: str | os.PathLike[str] = "train.json.gz",
    *,
    guess: Written | None = None,
    tell: bool = True,
    **options: Unpack[Options],
) -> Any:
    """Return a Lightning ``Callback``: ``Trainer(callbacks=[for_lightning()])``.

    For ``lightning`` and ``pytorch_lightning``. Arguments and errors as ``for_transformers``.
    """
    from tracehunch.capture.frameworks.lightning import lightning_callback  # noqa: PLC0415  # as above

    return lightning_callback(_plan(path, guess, options, tell=tell))


@dataclass(frozen=True, slots=True)
class _Examine:
    guess: Guess

    def __call__(self, path: Path) -> tuple[Look, str]:
        """Look at a trace with the guess; return what was seen, and the report."""
        from tracehunch.api import check  # noqa: PLC0415  # numpy loads with it, on the main process only
        from tracehunch.report import terminal  # noqa: PLC0415  # as above
        from tracehunch.report.layout import View  # noqa: PLC0415  # as above

        look = check(self.guess, path)
        return look, terminal.render(look, view=View(interactive=True), source=str(path))


def _plan(path: str | os.PathLike[str], guess: Written | None, options: Options, *, tell: bool) -> Plan:
    recording = Recording(**options, metadata={}, from_start=True)
    claimed = Guess(()) if guess is None else guess_of(guess, "step")  # now, before anything runs
    return Plan(Path(path), recording, _Examine(claimed) if tell else None)
