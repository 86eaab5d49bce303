"""What may have made another backend run than was to be expected: settings that a trace does not record.

Each is tried: only what would have given the backend that ran is named.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, cast, get_args

from tracehunch.predict.environment import Backend
from tracehunch.predict.releases import releases
from tracehunch.predict.sdpa import across_versions, predict_sdpa
from tracehunch.predict.sdpa.rows import SDP_NAMES
from tracehunch.predict.sdpa.words import cudnn_name
from tracehunch.units import join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.predict.environment import Environment
    from tracehunch.predict.sdpa import SdpaCall
    from tracehunch.predict.traced.explain import Case, Group

_SWITCHES: Final = {
    "flash": "enable_flash_sdp",
    "efficient": "enable_mem_efficient_sdp",
    "math": "enable_math_sdp",
    "cudnn": "enable_cudnn_sdp",
}
"""Backend -> the function of torch.backends.cuda that switches it."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Something that would have given what ran; `words` begin as the program would write it."""

    id: str
    words: str


def causes(group: Group) -> tuple[Cause, ...]:
    """Return what would have given the backend that ran; none where nothing known would."""
    case, ran = group.shown, group.ran
    if case is None or ran not in get_args(Backend):
        return ()
    backend = cast("Backend", ran)
    found = [
        cause
        for cause, call, env in _supposed(case, backend)
        if replace(case, call=call, env=env, prediction=predict_sdpa(call, env)).gives(
            ran, finished=group.finished
        )
    ]
    return (*found, *_versions(case, group, backend))


def _supposed(case: Case, ran: Backend) -> Iterator[tuple[Cause, SdpaCall, Environment]]:
    """Yield causes, each with the call and the environment as they would have been."""
    call, env = case.call, case.env
    name = SDP_NAMES[ran]
    pinned = replace(env, pinned=(ran,))
    yield Cause("pinned", f"sdpa_kernel(SDPBackend.{name}) around the call"), call, pinned
    before = _asked_before(case, ran)
    if before:
        switches = join([f"{_SWITCHES[backend]}(False)" for backend in before])
        off = replace(env, enabled={**env.enabled, **dict.fromkeys(before, False)})
        yield Cause("switched off", f"torch.backends.cuda: {switches}"), call, off
    yield (
        Cause("deterministic", "torch.use_deterministic_algorithms(True), which cuDNN's attention refuses"),
        call,
        replace(env, deterministic=True, warn_only=False),
    )
    yield Cause("no flash", "a build of PyTorch without flash kernels"), call, replace(env, flash_built=False)
    shifted = replace(call, q=replace(call.q, storage_offset=1))
    yield Cause("offset", "inputs that do not begin at a multiple of 16 bytes"), shifted, env
    yield from _cudnn_last(case)
    if env.device == "cpu" and ran == "math":
        yield Cause("meta", "tensors on the meta device, where math is all there is"), call, pinned


def _cudnn_last(case: Case) -> Iterator[tuple[Cause, SdpaCall, Environment]]:
    """Yield what keeps cuDNN from being asked first."""
    call, env = case.call, case.env
    rule = releases()[env.torch].cudnn_first
    if rule is None or env.device != "cuda":
        return
    variable = {**env.env, rule.variable: rule.off_value}
    setting = f"{rule.variable}={rule.off_value} in the environment"
    yield Cause("variable", setting), call, replace(env, env=variable)
    if rule.above_cudnn is not None:
        words = f"a cuDNN that is not newer than {cudnn_name(rule.above_cudnn)} on the library path"
        yield Cause("older cuDNN", words), call, replace(env, cudnn=rule.above_cudnn)


def _asked_before(case: Case, ran: Backend) -> list[Backend]:
    order = case.prediction.order
    before = order[: order.index(ran)] if ran in order else order
    answers = ((backend, case.prediction.answer(backend)) for backend in before)
    return [backend for backend, answer in answers if answer is not None and answer.accepted is not False]


def _versions(case: Case, group: Group, ran: Backend) -> list[Cause]:
    """Name other versions that pick what ran, where the trace does not say which one it was."""
    if group.setting.sure:
        return []
    tried = {one.env.torch_name for one in group.cases}
    other = [
        version
        for version, chosen in across_versions(case.call, case.env)
        if chosen == ran and version not in tried
    ]
    return [Cause("version", f"torch {join(other, 'or')}")] if other else []
