"""Which backend PyTorch picks for a call of SDPA, why not another, and whether the call raises."""

from typing import Final

from tracehunch.predict.environment import Backend, Device, Environment
from tracehunch.predict.releases import releases
from tracehunch.predict.sdpa.answer import answer_of, moved
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.prediction import BackendAnswer, Choice, SdpaPrediction
from tracehunch.predict.sdpa.priority import Priority, priority
from tracehunch.predict.sdpa.raising import (
    backend_error,
    flat_mask_error,
    input_error,
    is_empty,
)

_FUSED: Final[tuple[Backend, ...]] = ("flash", "efficient", "cudnn")
_TABLES: Final[dict[Device, dict[Backend, str]]] = {
    "cuda": {"flash": "cuda-flash", "efficient": "cuda-efficient", "cudnn": "cuda-cudnn"},
    "rocm": {"flash": "rocm-flash", "efficient": "rocm-efficient", "cudnn": "absent"},
    "cpu": {"flash": "cpu-flash", "efficient": "absent", "cudnn": "absent"},
    "mps": {"flash": "absent", "efficient": "absent", "cudnn": "absent"},
    "xpu": {"overrideable": "xpu-overrideable"},
}
_EXECUTED_ON_CPU: Final = (2, 13)


def predict_sdpa(call: SdpaCall, env: Environment) -> SdpaPrediction:
    """Predict what PyTorch does with a call: the backend it picks, why the others are refused, its error."""
    release = releases().get(env.torch)
    if release is None or call.nested:
        what = "nested tensors have rules of their own" if release else _unknown_release(env)
        return SdpaPrediction(None, (), (), cannot_tell=what, exact=False)
    asked = priority(env, release)
    answers = _answers(call, env)
    by_name = {answer.backend: answer for answer in answers}
    if env.device == "cuda" and not env.is_enabled("math"):
        by_name["overrideable"] = answer_of("overrideable", "cuda-overrideable", call, env)
    chosen, unknown = _choose(asked, by_name)
    if not any(env.is_enabled(backend) for backend in ("math", *_FUSED)) and env.device != "xpu":
        chosen, unknown = "error", ""
    error = _error(call, env, chosen, asked.order, by_name)
    runs = error is None and chosen is not None and chosen != "error" and not is_empty(call)
    return SdpaPrediction(
        chosen=chosen,
        order=asked.order,
        answers=answers,
        raises=error,
        ran=chosen if runs and chosen != "error" else None,
        cannot_tell="" if chosen else unknown,
        why=asked.why,
        exact=release.exact
        if env.device == "cuda"
        else env.device == "cpu" and env.torch == _EXECUTED_ON_CPU,
    )


def _unknown_release(env: Environment) -> str:
    known = [f"{major}.{minor}" for major, minor in releases()]
    return f"the rules of torch {env.torch_name} are not known (those of {known[0]} to {known[-1]} are)"


def _answers(call: SdpaCall, env: Environment) -> tuple[BackendAnswer, ...]:
    fused = [answer_of(backend, name, call, env) for backend, name in _TABLES[env.device].items()]
    return (*fused, answer_of("math", "math", call, env))


def _choose(asked: Priority, answers: dict[Backend, BackendAnswer]) -> tuple[Choice | None, str]:
    chosen, unknown = _first(asked.order, answers)
    if asked.other is not None and _first(asked.other, answers)[0] != chosen:
        return None, f"the order depends on {asked.unknown}"
    return chosen, unknown


def _first(order: tuple[Backend, ...], answers: dict[Backend, BackendAnswer]) -> tuple[Choice | None, str]:
    for backend in order:
        answer = answers.get(backend)
        if answer is None:
            continue
        if answer.accepted is None:
            return None, answer.unknown
        if answer.accepted:
            return backend, ""
    return "error", ""


def _error(
    call: SdpaCall,
    env: Environment,
    chosen: Choice | None,
    order: tuple[Backend, ...],
    answers: dict[Backend, BackendAnswer],
) -> str | None:
    error = input_error(call)
    if error is not None or chosen is None or is_empty(call):
        return error
    if call.mask is not None and len(call.mask.shape) < 2:  # a mask without rows
        for backend in order:
            answer = answers.get(backend)
            if backend == chosen or answer is None:
                break
            if answer.first is not None and answer.first.check == "mask-shape":
                return flat_mask_error(call)
    return backend_error(call, env, chosen)


def across_versions(
    call: SdpaCall, env: Environment, *, same_cuda: bool = False
) -> tuple[tuple[str, Choice | None], ...]:
    """Return what each exactly known version picks, as ("2.13", "cudnn"), with its own wheel's cuDNN.

    With `same_cuda` that wheel is the one for the CUDA of `env`.
    """
    return tuple(
        (
            f"{release.torch[0]}.{release.torch[1]}",
            predict_sdpa(call, moved(env, release, same_cuda=same_cuda)).chosen,
        )
        for release in releases().values()
        if release.exact
    )
