"""Predictions in bulk: a JSON line in, the same line with what is predicted of it out."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec

from tracehunch.errors import GuessError
from tracehunch.predict.activities import Activities
from tracehunch.predict.environment import Backend, Environment
from tracehunch.predict.sdpa.call import SdpaCall, sdpa_call
from tracehunch.predict.sdpa.dispatch import predict_sdpa
from tracehunch.predict.sdpa.prediction import BackendAnswer, Choice, SdpaPrediction

Counter = Callable[[SdpaCall, Environment], Activities]
"""What a call puts on the GPU, as `predict.attention` says."""

SDP_NAMES: Final[Mapping[Choice, str]] = {
    "math": "MATH",
    "flash": "FLASH_ATTENTION",
    "efficient": "EFFICIENT_ATTENTION",
    "cudnn": "CUDNN_ATTENTION",
    "overrideable": "OVERRIDEABLE",
    "error": "ERROR",
}
"""Names of `torch.nn.attention.SDPBackend`."""

_ANSWERS: Final[tuple[Backend, ...]] = ("flash", "efficient", "cudnn")


class _Row(msgspec.Struct):
    """The keys of a line; Hk, Sk and Dv are H, S and D where absent."""

    B: int
    H: int
    S: int
    D: int
    dtype: str
    Hk: int | None = None
    Sk: int | None = None
    Dv: int | None = None
    causal: bool | None = False
    mask: str | list[int] | None = None
    dropout: float | None = 0.0
    grad: bool | None = False
    gqa: bool | None = False
    layout: str | None = "bhsd"
    deterministic: bool | None = False


def call_from_row(row: Mapping[str, Any]) -> SdpaCall:
    """Make a call from the keys of a line.

    They are B, H, Hk, S, Sk, D, Dv, dtype, causal, mask, dropout, grad, gqa and layout. B, H, S, D and dtype
    must be there. `mask` is a word of `call.MASKS`, or the shape of a boolean mask.

    Raises:
        GuessError: a key is missing, or its value is not known.

    """
    return _call(_parsed(row))


def predict_rows(lines: Iterable[str], env: Environment, count: Counter | None = None) -> Iterator[str]:
    """Add `predicted` to each line that describes a call; blank lines and a header that names a device pass.

    `predicted` has `chosen` (a name of torch's SDPBackend, null where it cannot be told), `flash`,
    `efficient` and `cudnn` (whether each accepts, null: cannot tell), `reasons` (by backend, why not; under
    "chosen" why it cannot be told) and `raises`; with `count` also `kernels`, `copies` and `memsets`.
    `deterministic` in a line means `torch.use_deterministic_algorithms(True, warn_only=True)`; without
    warn_only it is a property of the environment.

    Raises:
        GuessError: a line that is no JSON object, lacks a key, or has a value that is not known.

    """
    warned = replace(env, deterministic=True, warn_only=not env.deterministic or env.warn_only)
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        try:
            raw = decoded(text)
            if "device" in raw and "B" not in raw:
                yield text
                continue
            row = _parsed(raw)
            call = _call(row)
        except GuessError as error:
            raise GuessError(f"line {number}: {error.what}", error.why, error.todo) from None
        where = warned if row.deterministic else env
        predicted = _plain(predict_sdpa(call, where))
        if count is not None:
            activities = count(call, where)
            predicted |= {
                "kernels": activities.kernel_count,
                "copies": activities.copy_count,
                "memsets": activities.memsets,
            }
        if "predicted" in raw:
            text = json.dumps({key: value for key, value in raw.items() if key != "predicted"})
        yield f'{text[:-1].rstrip()}, "predicted": {json.dumps(predicted)}}}'


def decoded(text: str) -> dict[str, Any]:
    """Return the JSON object of a line.

    Raises:
        GuessError: it is no JSON, or no object.

    """
    try:
        raw = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise GuessError("no JSON", str(error), "give one JSON object a line") from None
    except RecursionError:
        raise GuessError("no JSON", "it is nested too deeply", "give one JSON object a line") from None
    if not isinstance(raw, dict):
        raise GuessError("no JSON object", f"it is a {type(raw).__name__}", "give one JSON object a line")
    return raw


def _parsed(row: Mapping[str, Any]) -> _Row:
    try:
        return msgspec.convert(row, _Row)
    except msgspec.ValidationError as error:
        raise GuessError(str(error), "", "each line needs B, H, S, D and dtype") from None


def _call(row: _Row) -> SdpaCall:
    return sdpa_call(
        row.B,
        row.H,
        row.S,
        row.D,
        kv_heads=row.Hk,
        keys=row.Sk,
        value_dim=row.Dv,
        dtype=row.dtype,
        layout=row.layout or "bhsd",
        mask=tuple(row.mask) if isinstance(row.mask, list) else row.mask,
        dropout=row.dropout or 0.0,
        is_causal=bool(row.causal),
        enable_gqa=bool(row.gqa),
        requires_grad=bool(row.grad),
    )


def _plain(prediction: SdpaPrediction) -> dict[str, Any]:
    answers = {answer.backend: answer for answer in prediction.answers}
    plain: dict[str, Any] = {"chosen": None if prediction.chosen is None else SDP_NAMES[prediction.chosen]}
    reasons: dict[str, list[str]] = {}
    for backend in _ANSWERS:
        answer = answers.get(backend)
        plain[backend] = None if answer is None else answer.accepted
        if answer is not None and not answer.accepted:
            reasons[backend] = _why_not(answer)
    if prediction.chosen is None:
        reasons["chosen"] = [prediction.cannot_tell]
    return plain | {"reasons": reasons, "raises": prediction.raises}


def _why_not(answer: BackendAnswer) -> list[str]:
    if answer.accepted is None:
        return [answer.unknown]
    return [rejection.advice for rejection in answer.rejections]
