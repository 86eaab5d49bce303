"""SDPA is recorded whole: one call, with what its dispatcher looks at, and one for its backward."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tracehunch.capture.program.layouts import gradient, output
from tracehunch.capture.program.tensors import spec
from tracehunch.predict.sdpa import SdpaCall, predict_sdpa

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracehunch.capture.program.known import Known
    from tracehunch.capture.program.tape import Tape
    from tracehunch.predict.environment import Backend, Environment
    from tracehunch.predict.sdpa import SdpaPrediction
    from tracehunch.predict.sdpa.call import MaskContent


def attention(torch: Any, tape: Tape, known: Known, env: Environment) -> Callable[..., Any]:
    """Return what is done instead of `scaled_dot_product_attention` on the GPU, whoever calls it."""
    attend = _attend(torch, tape, known, env)

    def kernel(  # noqa: PLR0917  # as the schema has them
        query: Any, key: Any, value: Any, attn_mask: Any = None, dropout_p: float = 0.0,
        is_causal: bool = False, *, scale: float | None = None, enable_gqa: bool = False,
    ) -> Any:  # fmt: skip
        rest = (dropout_p, is_causal, scale, enable_gqa, torch.is_grad_enabled())
        return attend.apply(query, key, value, attn_mask, *rest)

    return kernel


def _attend(torch: Any, tape: Tape, known: Known, env: Environment) -> Any:
    class Attend(torch.autograd.Function):  # type: ignore[misc]  # torch is not typed here
        """Output and gradients without values, laid out as the backend's are."""

        @staticmethod
        def forward(ctx: Any, *asked: Any) -> Any:
            *given, grad = asked
            q, _, _, mask, *rest = given
            call = _call(given, grad, _content(torch, known, mask, given))
            pinned = pinned_backends(torch)
            picked = predict_sdpa(call, replace(env, pinned=pinned or env.pinned))
            backend = picked.ran
            with tape.paused():
                made = _made(torch, call, q, picked)
            known.forget(made)  # fresh memory: what it holds is not what attention makes of the inputs
            values = _values(torch, known, given)
            if values is not None:
                known.keep(made, values)
            tensors = [one for one in given[:4] if one is not None]
            tape.note_attention(call, tensors, made, pinned, "forward")
            ctx.call, ctx.pinned, ctx.backend, ctx.mask, ctx.rest = call, pinned, backend, mask, rest
            ctx.save_for_backward(*given[:3])
            return made

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            saved = ctx.saved_tensors  # a checkpoint gives them once
            inputs = [*saved, ctx.mask]
            with tape.paused():
                grads = [
                    gradient(torch, one, ctx.backend) if needed and one is not None else None
                    for one, needed in zip(inputs, ctx.needs_input_grad, strict=False)
                ]
            made = [one for one in grads if one is not None]
            for one in made:
                known.forget(one)
            _keep_gradients(torch, known, (inputs, ctx.rest), grad, grads)
            tape.note_attention(ctx.call, [grad, *saved], made, ctx.pinned, "backward")
            return (*grads, None, None, None, None, None)

    return Attend


def _made(torch: Any, call: SdpaCall, q: Any, picked: SdpaPrediction) -> Any:
    """Return the result; for heads or batches that do not fit, of a call that raises, what was meant."""
    try:
        return output(torch, call, q, picked.ran)
    except RuntimeError:
        if picked.raises is None:
            raise
        return q.new_empty((*call.q.shape[:-1], call.v.shape[-1]))


def _call(given: Sequence[Any], grad: bool, content: MaskContent) -> SdpaCall:
    q, k, v, mask, dropout, causal, scale, grouped = given
    return SdpaCall(
        q=spec(q), k=spec(k), v=spec(v), mask=None if mask is None else spec(mask), dropout=dropout,
        is_causal=causal, enable_gqa=grouped, scale=scale, grad_enabled=grad, mask_content=content,
    )  # fmt: skip


def pinned_backends(torch: Any) -> tuple[Backend, ...] | None:
    """Return the backends that `sdpa_kernel` or `enable_*_sdp` leave on; None where all are."""
    asked = torch.backends.cuda
    on: dict[Backend, bool] = {
        "flash": asked.flash_sdp_enabled(), "efficient": asked.mem_efficient_sdp_enabled(),
        "math": asked.math_sdp_enabled(), "cudnn": asked.cudnn_sdp_enabled(),
    }  # fmt: skip
    return None if all(on.values()) else tuple(name for name, is_on in on.items() if is_on)


def _content(torch: Any, known: Known, mask: Any, given: Sequence[Any]) -> MaskContent:
    """Return what a mask whose values are known holds."""
    real = None if mask is None else known.of(mask)
    if real is None or real.dim() < 2:
        return "unknown"

    def look() -> MaskContent:
        seen = real if real.dtype == torch.bool else real > torch.finfo(real.dtype).min / 2
        length, keys = given[0].shape[-2], given[1].shape[-2]
        triangle = torch.ones(length, keys, dtype=torch.bool).tril()
        if seen.shape[-2:] == triangle.shape and bool((seen == triangle).all()):
            return "causal"
        return "fully-masked-rows" if not bool(seen.any(-1).all()) else "unknown"

    return known.aside(look) or "unknown"


def _values(torch: Any, known: Known, given: Sequence[Any]) -> Any | None:
    reals = [None if one is None else known.of(one) for one in given[:4]]
    if not known.everything or any(real is None for real in reals[:3]):
        return None
    attend = torch.nn.functional.scaled_dot_product_attention
    mask, (dropout, causal, scale, grouped) = reals[3], given[4:]
    return known.aside(
        lambda: attend(*reals[:3], mask, dropout, causal, scale=scale, enable_gqa=grouped).contiguous()
    )


def _keep_gradients(torch: Any, known: Known, given: Any, grad: Any, grads: list[Any]) -> None:
    inputs, (dropout, causal, scale, grouped) = given
    reals = [None if one is None else known.of(one) for one in (*inputs, grad)]
    if not known.everything or any(real is None for real in (*reals[:3], reals[4])):
        return
    wanted = [at for at, one in enumerate(grads) if one is not None]

    def compute() -> Any:
        with torch.enable_grad():
            leaves: list[Any] = [None if one is None else one.detach().clone() for one in reals[:4]]
            for at in wanted:
                leaves[at].requires_grad_()
            attend = torch.nn.functional.scaled_dot_product_attention
            made = attend(*leaves[:3], leaves[3], dropout, causal, scale=scale, enable_gqa=grouped)
            return torch.autograd.grad(made, [leaves[at] for at in wanted], reals[4])

    for at, value in zip(wanted, known.aside(compute) or (), strict=False):
        known.keep(grads[at], value)
