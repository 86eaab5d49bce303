"""The prediction of attention as a hunch.toml that ``tracehunch check`` holds against a trace."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from tracehunch.errors import GuessError
from tracehunch.guess import Claim, Guess
from tracehunch.guess.write import write_hunch
from tracehunch.predict.forecast import BY_HAND, leaders, plain_name
from tracehunch.predict.roofline import AttentionTime
from tracehunch.report.prediction import title

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.report.prediction import Expected, Prediction


_LEADERS: Final = 2
"""Ops that are claimed to lead at most."""


def render(prediction: Prediction, *, device: str | None = None, torch: str | None = None) -> str:
    """Return the text of a hunch.toml: counts, the SDPA backend, leading ops, by the GPU's clock a time.

    A variant's scope is its annotation, "attn_fwd" or "sdpa_fwd"; where several would share one, it is the
    variant's name, to be changed to that of the annotation. `device` and `torch` are as traces have them
    ("NVIDIA H200", "2.13.0+cu130"), None where that is not known: `check` compares them to the trace's.

    Raises:
        GuessError: no variant has anything to claim.

    """
    expected = prediction.expected
    shared = Counter(one.variant.label for one in expected if one.forecast.raises is None)
    claims: list[Claim] = []
    comments = [f"{title(prediction)}: what to expect of one forward.", "  tracehunch check hunch.toml TRACE"]
    for one in expected:
        name, label = one.variant.name, one.variant.label
        if one.forecast.raises is not None:
            comments.append(f"{name} raises: {one.forecast.raises}")
            continue
        scope = label if shared[label] == 1 else name
        claims += _claims(one, scope, prediction)
    if any(count > 1 for count in shared.values()):
        comments.append(
            "Scopes are variants' names: write your annotations' in their place, or leave one variant."
        )
    if device is None and any(claim.unit == "us" for claim in claims):
        comments.append(
            f"Times are of {prediction.gpu_name}; given --gpu by its full name, check refuses others."
        )
    if not claims:
        raise GuessError(
            "there is nothing to claim", comments[-1].strip(), "ask for --format terminal, which says why"
        )
    return write_hunch(Guess(tuple(claims), _context(prediction, device, torch)), comments, datetime.now(UTC))


def _claims(one: Expected, scope: str, prediction: Prediction) -> Iterator[Claim]:
    found = one.forecast
    counts = (
        ("kernels", found.forward.kernel_count),
        ("copies", found.forward.copy_count),
        ("memsets", found.forward.memsets),
    )
    sure = found.forward.confidence
    for key, count in counts:
        if count is not None:
            yield Claim(key, "==", count, scope, "expert", confidence=sure, unit="count")
    if found.backend is not None and plain_name(one.variant.name) not in BY_HAND:
        yield Claim("sdpa.backend", "==", found.backend, scope, "expert", confidence=sure, unit="text")
    time = found.time
    ops = leaders(found.forward)[:_LEADERS]
    if ops and isinstance(time, AttentionTime):
        why = "by the sum of its steps in the model of time"
        yield Claim("dominant", "leads", ops, scope, "expert", why, time.confidence, unit="text")
    if prediction.clock == "gpu" and isinstance(time, AttentionTime):
        span = (round(time.low_us, 1), round(time.high_us, 1))
        why = "; ".join(time.why)
        yield Claim("gpu_time", "in", span, scope, "expert", why, time.confidence, unit="us")


def _context(prediction: Prediction, device: str | None, torch: str | None) -> dict[str, str]:
    env = prediction.env
    context = {
        "gpu": prediction.gpu_name,
        "torch_version": env.torch_name,
        "workload": str(prediction.workload),
    }
    context |= {name: text for name, text in (("device", device), ("torch", torch)) if text is not None}
    if env.compute_capability is not None:
        context["compute_capability"] = ".".join(map(str, env.compute_capability))
    return context
