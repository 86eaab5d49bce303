"""Cross entropy with weights of classes and smoothed labels, as plain tensors have it.

For tensors that Python handles, as those without data, PyTorch fills where it selects otherwise. Source:
`cross_entropy_loss_label_smoothing` in ATen/native/LossNLL.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.capture.program.known import Known
    from tracehunch.capture.program.tape import Tape

_MEAN: Final = 1


def cross_entropy(torch: Any, tape: Tape, known: Known) -> Callable[..., Any]:
    """Return what is done instead of `cross_entropy_loss` on the GPU."""
    aten = torch.ops.aten

    def counted(target: Any, ignored: Any) -> Any:
        """Return the targets that count: all of them where it is not known which are ignored."""
        kept = ignored.bitwise_not()
        if known.of(kept) is not None:
            return target.masked_select(kept)
        with tape.paused():
            made = torch.empty(target.numel(), dtype=target.dtype, device=target.device)
        tape.note_named("aten::masked_select", [target, kept], made)
        return made

    def loss(  # noqa: PLR0917  # as the schema has them
        self: Any, target: Any, weight: Any = None, reduction: int = _MEAN, ignore_index: int = -100,
        label_smoothing: float = 0.0,
    ) -> Any:  # fmt: skip
        if weight is None or label_smoothing <= 0 or reduction != _MEAN or self.shape == target.shape:
            rest = (weight, reduction, ignore_index, label_smoothing)
            return aten.cross_entropy_loss.default.decompose(self, target, *rest)
        dim = 0 if self.dim() == 1 else 1
        scores = self.log_softmax(dim)
        main = aten.nll_loss_nd.default(scores, target, weight, reduction, ignore_index)
        each = [1] * self.dim()
        each[dim] = weight.shape[0]
        smooth = (scores * weight.view(each)).sum(dim).neg()
        ignored = target.eq(ignore_index)
        smooth.masked_fill_(ignored, 0.0)
        whole = weight.gather(0, counted(target, ignored).flatten()).sum()
        made = smooth.sum() / whole
        return main * (1 - label_smoothing) + made * (label_smoothing / self.shape[dim])

    return loss
