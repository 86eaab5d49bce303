"""What a trace recorded of the inputs of one SDPA call, and what in them keeps fused kernels away."""

from dataclasses import dataclass
from math import prod
from typing import Final

from tracehunch.facts.work import causal_pairs
from tracehunch.predict.environment import Environment
from tracehunch.predict.releases import releases
from tracehunch.predict.sdpa import BackendAnswer, SdpaCall, SdpaPrediction, predict_sdpa
from tracehunch.predict.traced import recorded_call, setting_of
from tracehunch.predict.traced.recorded import DTYPES
from tracehunch.trace.model import Int64, Trace
from tracehunch.units import join

_HALF_TYPES: Final = ("bfloat16", "float16")
HALF: Final = {written: name for written, name in DTYPES.items() if name in _HALF_TYPES}
"""16-bit types as ``Input type`` writes them."""

_DROPOUT: Final = "dropout"
_ABSENT: Final = "not-on-device"
_READ: Final = 64  # calls


@dataclass(frozen=True, slots=True)
class SdpaInputs:
    """A call as it was recorded, and every environment that it may have run in, oldest torch first."""

    call: SdpaCall
    envs: tuple[Environment, ...]

    @property
    def q(self) -> tuple[int, ...]:
        """Shape of the query: batch, heads, length, head dimension."""
        return self.call.q.shape

    @property
    def types(self) -> tuple[str, ...]:
        """Types of query, key and value, as torch writes them."""
        return tuple(given.dtype for given in self.call.inputs)

    @property
    def half(self) -> bool:
        """Whether the query is float16 or bfloat16."""
        return self.call.q.dtype in _HALF_TYPES

    @property
    def flops(self) -> int:
        """Multiplications and additions of both matrix products over the pairs that a fused kernel visits."""
        *batch, length, d_qk = self.q
        keys, d_v = self.call.k.shape[-2], self.call.v.shape[-1]
        pairs = causal_pairs(length, keys) if self.call.is_causal else length * keys
        return 2 * prod(batch) * pairs * (d_qk + d_v)

    @property
    def min_bytes(self) -> int:
        """Bytes that any kernel has to move: query, key, value in, result out, each once."""
        given = self.call.inputs
        result = prod(self.q[:-1]) * self.call.v.shape[-1]
        return self.call.q.item_bytes * (sum(one.numel for one in given) + result)


def sdpa_inputs(trace: Trace, row: int, *, on_gpu: bool = True) -> SdpaInputs | None:
    """Read the inputs of an SDPA op; None where shapes were not recorded or make no sense."""
    recorded = recorded_call(trace.name_of(row), trace.args_of(row))
    if recorded is None or any(given.numel == 0 for given in recorded.call.inputs):
        return None
    envs = setting_of(trace, "gpu" if on_gpu else "cpu").envs
    return SdpaInputs(recorded.call, envs or (Environment(list(releases())[-1]),))


def largest_inputs(trace: Trace, rows: Int64, *, on_gpu: bool) -> SdpaInputs | None:
    """Read the inputs of the call with the largest products, which costs most; None if none are recorded."""
    found = [sdpa_inputs(trace, int(row), on_gpu=on_gpu) for row in rows[:_READ]]
    known = [inputs for inputs in found if inputs is not None]
    return max(known, key=lambda inputs: inputs.flops, default=None)


def is_for_dropout(inputs: SdpaInputs | None) -> bool:
    """Tell whether nothing but dropout on a CPU keeps fused kernels away: the model wants it in training."""
    if inputs is None or inputs.envs[-1].device != "cpu":
        return False
    flash = predict_sdpa(inputs.call, inputs.envs[-1]).answer("flash")
    return flash is not None and [one.check for one in flash.rejections] == [_DROPOUT]


def obstacles(inputs: SdpaInputs) -> list[str]:
    """Say what in the recorded inputs rules out every fused backend, in the newest torch where it does.

    Empty where one would take the call in every version that it may have been.
    """
    found = (_refusals(predict_sdpa(inputs.call, env)) for env in reversed(inputs.envs))
    return next((refusals for refusals in found if refusals), [])


def remedy(inputs: SdpaInputs) -> str:
    """Say what to change for the fused backend that refuses least; "" where ``obstacles`` is empty."""
    predicted = (predict_sdpa(inputs.call, env) for env in reversed(inputs.envs))
    refused = next((one for one in predicted if _refusals(one)), None)
    answers = [] if refused is None else [one for one in refused.answers if _is_refusal(one)]
    if not answers:
        return ""
    least = min(answers, key=lambda one: len(one.rejections))
    steps = dict.fromkeys(f"{one.words}: {one.todo}" for one in least.rejections)
    return f"For {least.backend}, {'; '.join(steps)}."


def _is_refusal(answer: BackendAnswer) -> bool:
    return answer.backend != "math" and answer.first is not None and answer.first.check != _ABSENT


def _refusals(predicted: SdpaPrediction) -> list[str]:
    """List the grounds of all fused backends, those on which several refuse once; empty if one does not."""
    found: dict[str, list[str]] = {}
    for answer in predicted.answers:
        first = answer.first
        if answer.backend == "math" or (first is not None and first.check == _ABSENT):
            continue
        if first is None:
            return []
        found.setdefault(first.words, []).append(answer.backend)
    return [f"{join(backends)}: {words}" for words, backends in found.items()]
