"""The series: each variant guessed, run here or read from the recording, and looked at."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from tracehunch.attention.expert import Expert, expert_of
from tracehunch.attention.guesses import guess_of
from tracehunch.attention.leaves import with_bookkeeping
from tracehunch.attention.outcome import Device, Outcome, Series
from tracehunch.attention.recorded import recording
from tracehunch.attention.run import Bench, RefusedError, running, set_up, try_once
from tracehunch.capture.profiler import profile_calls
from tracehunch.capture.torch_env import import_torch, versions
from tracehunch.cli.interrupts import noted
from tracehunch.errors import CaptureError, TracehunchError
from tracehunch.judge import examine
from tracehunch.trace import read

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracehunch.attention.variant import Variant
    from tracehunch.attention.verify import Verification
    from tracehunch.attention.workload import Workload
    from tracehunch.guess import Claim, Guess
    from tracehunch.predict.roofline import Calibration
    from tracehunch.verdict import Look

NO_GPU_ACTIVITY = (
    "the profiler recorded no GPU activity: CUPTI could not be used (another profiler is attached, or the "
    "driver or container forbids it); set KINETO_LOG_LEVEL=2 to see its own message"
)


FEWEST_STEPS: Final = 3
_MOST_STEPS: Final = 20
_PROFILED_S: Final = 2.0
"""Time that the profiled forwards of one variant may take on a CPU: 20 forwards of 100 ms."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, and where the traces go (``save_to`` None: nowhere)."""

    variants: tuple[Variant, ...]
    workload: Workload
    device: Device
    steps: int | None = None
    """Profiled forwards; None: as many as the device needs and its time allows."""
    warmup: int = 3
    check: bool = True
    save_to: Path | None = None
    calibration: Calibration | None = None
    """Peaks measured on the device."""


class Talk(Protocol):
    """What happens between the series and the person who watches it."""

    def guessed(self, variant: Variant, guess: Guess, device: Device, expert: Expert | None = None) -> None:
        """Hear that the guesses were sealed; the look comes next."""

    def ask(
        self,
        variant: Variant,
        workload: Workload,
        device: Device,
        last: Outcome | None,
        expert: Expert | None = None,
    ) -> Sequence[Claim]:
        """Ask for the user's own claims; ``last`` is the variant looked at before."""

    def looked(self, outcome: Outcome) -> None:
        """Hear that a variant is done."""


def run_series(plan: Plan, talk: Talk) -> Series:
    """Run all variants in order. An interrupt ends the series, with what was done until then.

    Raises:
        CaptureError: the inputs themselves cannot be made on the device.

    """
    done: list[Outcome] = []
    try:
        with noted() as interrupts, tempfile.TemporaryDirectory(prefix="tracehunch-") as scratch:
            bench = None if plan.device.recorded else set_up(plan.workload, plan.device)
            for variant in plan.variants:
                last = next((one for one in reversed(done) if one.look is not None), None)
                run = _Run(variant, plan, talk, last)
                outcome = run.recorded() if bench is None else run.live(bench, Path(scratch))
                interrupts.obey()
                done.append(outcome)
                talk.looked(outcome)
    except KeyboardInterrupt:
        left = tuple(variant.name for variant in plan.variants[len(done) :])
        return Series(tuple(done), interrupted=True, skipped=left, calibration=plan.calibration)
    return Series(tuple(done), calibration=plan.calibration)


@dataclass(frozen=True, slots=True)
class _Run:
    """One variant of a plan."""

    variant: Variant
    plan: Plan
    talk: Talk
    last: Outcome | None

    def live(self, bench: Bench, scratch: Path) -> Outcome:
        """Guess, run and look here; a recording stands in where the device cannot run the variant."""
        guess = guess_of(self.variant, bench.workload, bench.device)
        expert = expert_of(self.variant, bench.workload, bench.device, bench.inputs, self.plan.calibration)
        self.talk.guessed(self.variant, guess, bench.device, expert)
        outcome = Outcome(self.variant, "failed", bench.device, bench.workload, guess, expert=expert)
        try:
            outcome = replace(outcome, verification=try_once(self.variant, bench, check=self.plan.check))
            if outcome.verification is not None and not outcome.verification.passed:
                return replace(outcome, reason=_wrong(outcome.verification))
            guess = self._with_own(guess, bench.workload, bench.device, expert)
            path = self._profile(bench, scratch / f"{self.variant.name}.json.gz")
            return self._seen(replace(outcome, guess=guess), path)
        except RefusedError as refusal:
            misjudged = expert.guesses and expert.raises is None
            reason = _with_expert(str(refusal), expert, misjudged=misjudged)
            if self._device_is_the_reason(bench):
                return self.recorded(reason, misjudged=misjudged)
            return replace(outcome, reason=reason, misjudged=misjudged)
        except TracehunchError as error:
            return replace(outcome, reason=_with_expert(str(error), expert, misjudged=False))

    def recorded(self, reason: str = "", *, misjudged: bool = False) -> Outcome:
        """Guess, and look at the recorded trace of this variant."""
        recorded = recording()
        path = recorded.traces.get(self.variant.name)
        guess = guess_of(self.variant, recorded.workload, recorded.device)
        expert = expert_of(self.variant, recorded.workload, recorded.device)
        outcome = Outcome(
            self.variant, "failed", recorded.device, recorded.workload, guess,
            reason=reason, expert=expert, misjudged=misjudged,
        )  # fmt: skip
        if path is None:
            return replace(outcome, reason=reason or "no trace of it is recorded")
        self.talk.guessed(self.variant, guess, recorded.device, expert)
        guess = self._with_own(guess, recorded.workload, recorded.device, expert)
        look = look_at(path, guess, expert)
        outcome = replace(outcome, status="recorded", guess=guess, look=look, trace=path)
        return self._kept(outcome, path) if self.plan.device.recorded else outcome

    def _profile(self, bench: Bench, path: Path) -> Path:
        with running(self.variant, bench) as forward:
            return profile_calls(
                forward,
                path,
                label=self.variant.label,
                steps=self.plan.steps or _steps(forward, bench.device),
                warmup=self.plan.warmup,
                cuda=bench.device.kind == "cuda",
                metadata=versions(import_torch()),
            )

    def _seen(self, outcome: Outcome, path: Path) -> Outcome:
        look = look_at(path, outcome.guess, outcome.expert)
        if self._on_gpu() and not len(look.facts.tree.trace.gpu.row):
            return replace(outcome, reason=NO_GPU_ACTIVITY)
        if outcome.expert is not None and outcome.expert.raises is not None:
            reason = f"it ran, and the expert guessed that it raises: {outcome.expert.raises}"
            outcome = replace(outcome, reason=reason, misjudged=True)
        return self._kept(replace(outcome, status="ran", look=look), path)

    def _with_own(self, guess: Guess, workload: Workload, device: Device, expert: Expert) -> Guess:
        """Add what the user claims to the guess, which is sealed again."""
        own = tuple(self.talk.ask(self.variant, workload, device, self.last, expert))
        if not own:
            return guess
        guess = replace(guess, claims=(*guess.claims, *own))
        self.talk.guessed(self.variant, guess, device)
        return guess

    def _device_is_the_reason(self, bench: Bench) -> bool:
        """Whether another device would run it: this is a CPU, or the very call was recorded elsewhere."""
        return bench.device.kind == "cpu" or bench.workload == recording().workload

    def _on_gpu(self) -> bool:
        return self.plan.device.kind == "cuda"

    def _kept(self, outcome: Outcome, path: Path) -> Outcome:
        """Save the trace where the plan says; a full disk does not cost the look."""
        if self.plan.save_to is None:
            return outcome
        try:
            return replace(outcome, trace=save(path, self.plan.save_to))
        except CaptureError as error:
            return replace(outcome, reason=str(error))


def _steps(forward: Callable[[], object], device: Device) -> int:
    """Pick the number of forwards to profile: a CPU shared with others needs more than a GPU.

    Before it is timed, one forward does what happens only once.
    """
    if device.kind == "cuda":
        return FEWEST_STEPS
    forward()
    begun = time.perf_counter()
    forward()
    fitting = int(_PROFILED_S / max(time.perf_counter() - begun, 1e-9))
    return max(FEWEST_STEPS, min(fitting, _MOST_STEPS))


def _wrong(verification: Verification) -> str:
    error, allowed = verification.max_error, verification.tolerance
    return (
        f"its output is wrong: largest error {error:.2g} against float64, allowed {allowed:.2g}; not profiled"
    )


def _with_expert(reason: str, expert: Expert, *, misjudged: bool) -> str:
    """Add to the reason why a variant did not run what the expert had guessed."""
    if expert.raises is not None:
        return f"{reason.rstrip('.')}. As the expert guessed: {expert.raises}"
    return f"{reason.rstrip('.')}. The expert guessed that it runs" if misjudged else reason


def look_at(path: Path, guess: Guess, expert: Expert | None = None) -> Look:
    """Read a trace as a user's is read, and judge the guesses by it: the textbook's, then the expert's."""
    guesses = (guess,) if expert is None or not expert.guess.claims else (guess, expert.guess)
    return with_bookkeeping(examine(read(path), guesses))


def check_folder(folder: Path, option: str, *, make: bool) -> None:
    """Try to write in the folder that an option names, before any work is done; ``make``: make it first.

    Raises:
        CaptureError: nothing can be written there.

    """
    try:
        if make:
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".tracehunch-"):
            pass
    except OSError as error:
        why = error.strerror or str(error)
        raise CaptureError(f"cannot write to {folder}", why, f"choose another place for {option}") from error


def save(trace: Path, folder: Path) -> Path:
    """Copy a trace into a folder, whole or not at all; one of the same name is replaced.

    Raises:
        CaptureError: the folder does not take it.

    """
    handle, partial = tempfile.mkstemp(dir=folder, prefix=".tracehunch-")
    try:
        with os.fdopen(handle, "wb") as target, trace.open("rb") as source:
            shutil.copyfileobj(source, target)
        Path(partial).chmod(0o644)
        return Path(partial).replace(folder / trace.name)
    except OSError as error:
        raise CaptureError(f"cannot save {trace.name} in {folder}", error.strerror or str(error)) from error
    finally:
        Path(partial).unlink(missing_ok=True)
