"""`ctc_loss`: C++ reads the lengths on the host, and goes on with numbers.

It cannot where tensors have no data. Source: ATen/native/LossCTC.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.capture.program.known import Known

_MEAN: Final = 1


def ctc_loss(torch: Any, known: Known) -> Callable[..., Any]:
    """Return what is done instead of `ctc_loss` on the GPU; unknown lengths are taken as long as can be."""
    aten = torch.ops.aten

    def loss(  # noqa: PLR0917  # as the schema has them
        log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: int = 0,
        reduction: int = _MEAN, zero_infinity: bool = False,
    ) -> Any:  # fmt: skip
        steps = _numbers(torch, known, input_lengths, log_probs.shape[0])
        wanted = _numbers(torch, known, target_lengths, targets.shape[-1])
        made = aten._ctc_loss.default(log_probs, targets, steps, wanted, blank, zero_infinity)[0]  # noqa: SLF001  # an operator's name
        if zero_infinity:
            made = torch.where(made == float("inf"), made.new_zeros(()), made)
        if reduction == _MEAN:
            return (made / torch.tensor(wanted, dtype=made.dtype, device=made.device).clamp_min(1)).mean()
        return made.sum() if reduction else made

    return loss


def _numbers(torch: Any, known: Known, lengths: Any, most: int) -> list[int]:
    if not torch.is_tensor(lengths):
        return list(lengths)
    there = lengths.to("cpu", torch.long)
    real = known.of(there)
    if real is None:
        return [most] * lengths.numel()
    return [int(one) for one in known.aside(real.flatten().tolist)]
