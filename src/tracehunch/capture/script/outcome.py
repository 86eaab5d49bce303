"""What came of recording a script, in numbers and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tracehunch.units import join, plural

if TYPE_CHECKING:
    from tracehunch.capture.recorder import Recorder, Recording
    from tracehunch.capture.script.finder import Finder, Kind

UNITS: Final[dict[Kind, str]] = {"optimizer": "optimizer step", "forward": "forward", "whole": "script"}
"""What one step is called, by the kind of steps."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of it: the trace, None if there is none, of how many complete steps of which kind.

    ``remark`` says why it holds less than was asked for, or why there is none; "" if all is well. ``note`` is
    the recorder's, on the size of the file.
    """

    kind: Kind
    trace: Path | None = None
    steps: int = 0
    remark: str = ""
    note: str = ""

    @property
    def what(self) -> str:
        """What is in the trace: "3 optimizer steps"."""
        return plural(self.steps, UNITS[self.kind]) if self.kind != "whole" else "the script as a whole"

    @property
    def sentence(self) -> str:
        """One line about it."""
        if self.trace is None:
            return f"nothing was recorded: {self.remark}"
        short = f" ({self.remark})" if self.remark else ""
        return f"recorded {self.what}{short}: {as_typed(self.trace)}"


def as_typed(path: Path) -> str:
    """Return the path as one would type it here."""
    try:
        here = Path.cwd()
    except OSError:  # the script has deleted its folder
        return str(path)
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def recorded(before: Outcome, kind: Kind, recorder: Recorder, cut: str) -> Outcome:
    """Return the outcome of a recorder that has stopped, or that ``before`` it, where it wrote no trace."""
    remark = "; ".join(one for one in (cut, recorder.reason) if one)
    if recorder.trace_path is not None:
        return Outcome(kind, recorder.trace_path, recorder.steps_recorded, remark, recorder.note)
    if before.trace is not None:
        return replace(before, remark=remark) if recorder.has_steps else before
    return replace(before, kind=kind, remark=remark)


def explained(outcome: Outcome, finder: Finder, recording: Recording, torch_came: bool) -> Outcome:
    """Say why an outcome is no better, where nothing has been said yet."""
    better = outcome.kind in {finder.kind, "forward", "optimizer"}
    other = finder.only not in {None, outcome.kind}
    if outcome.trace is not None and not other and (better or not _seen(finder)):
        return outcome
    if outcome.trace is None and outcome.remark:
        return outcome
    if not torch_came:
        why = "the script did not import torch"
    elif _seen(finder):
        why = _too_few(finder, recording)
    elif outcome.trace is not None and finder.only is not None:
        why = f"the script made no {UNITS[finder.only]}"
    else:
        why = "the script made no step and used no GPU; set CUDA_VISIBLE_DEVICES= to record the CPU"
    return replace(outcome, remark="; ".join(one for one in (outcome.remark, why) if one))


def _seen(finder: Finder) -> list[str]:
    return [
        plural(rounds.ended, name)
        for name, rounds in (("optimizer step", finder.optimizers), ("forward", finder.models))
        if rounds.ended and (name != "forward" or finder.kind != "optimizer")  # then no longer counted
    ]


def _too_few(finder: Finder, recording: Recording) -> str:
    before = [f"{recording.skip} skipped"] * (recording.skip > 0)
    before += [f"{recording.warmup} to warm up"] * (recording.warmup > 0)
    return f"{join(_seen(finder))}, too few with {join(before)}; see --skip and --warmup"
