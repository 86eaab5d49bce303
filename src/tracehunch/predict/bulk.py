"""Predictions for many calls: a JSON line in, the same line with what is predicted of it out.

A line that describes no call (the machine, a probe of its peaks) passes unchanged.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tracehunch.errors import GuessError
from tracehunch.predict.activities import COUNTED, Activities
from tracehunch.predict.attention import VARIANTS, predict_attention
from tracehunch.predict.environment import Environment
from tracehunch.predict.forecast import Forecast, forecast, plain_name
from tracehunch.predict.roofline import AttentionTime, NoEstimate
from tracehunch.predict.roofline.time import Clock
from tracehunch.predict.sdpa import SdpaCall, call_from_row, predict_rows, tensor
from tracehunch.predict.sdpa.rows import decoded

_SIZES: Final = frozenset({"B", "H", "S", "D"})
_DIGITS: Final = 3  # of a microsecond


def predict_sdpa_rows(lines: Iterable[str], env: Environment) -> Iterator[str]:
    """Add `predicted` to each line that has the keys of an SDPA call.

    It has `chosen`, `flash`, `efficient`, `cudnn`, `reasons` and `raises` as `predict.sdpa.predict_rows`
    says, and `kernels`, `copies` and `memsets` of one forward, null where they cannot be told.

    Raises:
        GuessError: a line that is no JSON object, lacks a key, or has a value that is not known.

    """
    return predict_rows(lines, env, _count)


def predict_attention_rows(lines: Iterable[str], env: Environment, *, clock: Clock = "host") -> Iterator[str]:
    """Add `predicted` to each line that has B, H, S, D, dtype and a variant, as `backend` or `variant`.

    It has `backend`, `kernels`, `copies`, `memsets`, `raises` (null for no error), `gpu_time_us`, `low_us`,
    `high_us`, `flops`, `hbm_bytes` and `bound` of one forward, and `bwd_us`, `bwd_low_us` and `bwd_high_us`
    of its backward; what cannot be told is left out, and `cannot_tell` says why. Further keys are those of
    an SDPA call. Times are what a benchmark measures around the call, or with `clock` "gpu" the sum that a
    trace shows.

    Raises:
        GuessError: as above, and where the variant is not known.

    """
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text:
            continue
        try:
            raw = decoded(text)
            if not _SIZES & raw.keys():
                yield text
                continue
            variant = _variant(raw)
            call = call_from_row(raw)
            where = replace(env, deterministic=True, warn_only=True) if raw.get("deterministic") else env
            found = forecast(variant, call, where, clock=clock)
            predicted = plain(found) | _why_untold(found)
        except GuessError as error:
            raise GuessError(f"line {number}: {error.what}", error.why, error.todo) from None
        if "predicted" in raw:
            text = json.dumps({key: value for key, value in raw.items() if key != "predicted"})
        yield f'{text[:-1].rstrip()}, "predicted": {json.dumps(predicted)}}}'


def plain(found: Forecast) -> dict[str, Any]:
    """Return a forecast's numbers for JSON, without what cannot be told."""
    told: dict[str, Any] = {
        "backend": found.backend,
        "kernels": found.forward.kernel_count,
        "copies": found.forward.copy_count,
        "memsets": found.forward.memsets,
        **_times(found.time, "gpu_time_us", ""),
        "flops": found.flops,
        "hbm_bytes": found.hbm_bytes,
        "bound": found.bound,
        **_times(found.backward, "bwd_us", "bwd_"),
    }
    return {key: value for key, value in told.items() if value is not None} | {"raises": found.raises}


def _why_untold(found: Forecast) -> dict[str, list[str]]:
    """Say why numbers are left out of a call that does not raise."""
    if found.raises is not None:
        return {}
    forward = found.forward
    why = list(forward.reasons) if None in (forward.kernels, forward.copies, forward.memsets) else []
    why += [time.reason for time in (found.time, found.backward) if isinstance(time, NoEstimate)]
    told = list(dict.fromkeys(reason for reason in why if reason != COUNTED))
    return {"cannot_tell": told} if told else {}


def _times(time: object, middle: str, prefix: str) -> dict[str, float]:
    if not isinstance(time, AttentionTime):
        return {}
    return {
        middle: round(time.mid_us, _DIGITS),
        f"{prefix}low_us": round(time.low_us, _DIGITS),
        f"{prefix}high_us": round(time.high_us, _DIGITS),
    }


def _count(call: SdpaCall, env: Environment) -> Activities:
    return predict_attention("auto", _shared_mask(call), env)


def _shared_mask(call: SdpaCall) -> SdpaCall:
    """Give an additive mask, which lines name without a shape, the usual one: (S, Sk), for all heads."""
    if call.mask is None or call.mask.dtype == "bool":
        return call
    return replace(call, mask=tensor((call.q.shape[2], call.k.shape[2]), call.mask.dtype))


def _variant(raw: Mapping[str, Any]) -> str:
    given = {key: raw[key] for key in ("variant", "backend") if raw.get(key) is not None}
    todo = f'give one of {", ".join(VARIANTS)} as "backend" or "variant"'
    if not given:
        raise GuessError("no backend or variant is given", "", todo)
    names = []
    for name in given.values():
        if not isinstance(name, str) or plain_name(name) not in VARIANTS:
            raise GuessError(f"backend {name!r} is not known", "", todo)
        names.append(plain_name(name))
    if len(set(names)) > 1:
        raise GuessError("backend and variant differ", "", "leave one out")
    return names[0]
