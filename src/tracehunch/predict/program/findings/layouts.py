"""layout-copy around convolutions: cuDNN turns what it reads and writes, where tensors are channels first."""

from collections.abc import Iterator, Sequence
from typing import Final

from tracehunch.predict.program.findings._run import (
    Run,
    at_line,
    launches,
    line_of,
    modules_of,
    scope_of,
)
from tracehunch.predict.program.findings.copies import LAYOUT
from tracehunch.predict.program.model import CallGuess, Foreseen
from tracehunch.units import plural

_CONVOLUTION: Final = "aten::convolution"
_NORM: Final = "aten::native_group_norm"
_TURNED: Final = "layout-transform"
_OF_BANDWIDTH: Final = 0.5
"""What kernels that turn a tensor reach of the bandwidth."""
_CHANNELS_LAST: Final = (
    "model = model.to(memory_format=torch.channels_last), and the input likewise, once: convolutions and "
    "what lies "
    "between them then keep that layout."
)
_COMPARE: Final = (
    "Measure the network in both layouts, model.to(memory_format=torch.channels_last) with its input and "
    "torch.contiguous_format: group norm works in NCHW, so that between group norms and convolutions one "
    "of them "
    "copies either way."
)


def turned(run: Run) -> Iterator[Foreseen]:
    """Report the conversions that cuDNN is expected to make around convolutions."""
    convolutions = [one for one in run.calls if one.call.op == _CONVOLUTION and launches(one)]
    same = [one for one in convolutions if _turns(one)]
    spent = sum(_us(run, one) for one in same)
    if not spent:
        return
    norms = sum(one.call.op == _NORM for one in run.calls)
    grouped = 2 * norms > len(convolutions)
    kernels = sum(_turns(one) for one in same)
    yield Foreseen(
        id=LAYOUT,
        scope=scope_of(same),
        severity="note" if grouped else run.severity(spent, spent),
        confidence="medium",
        time_at_stake_us=spent,
        summary="cuDNN changes the layout of what convolutions read and write: "
        f"{plural(kernels, 'kernel')} in "
        f"{plural(len(same), 'convolution')}, about {run.of_gpu(spent)}{at_line(same)}",
        cause="cuDNN's kernels want channels last. How many conversions a convolution takes was told by "
        "those of "
        "other sizes; at stake is what their bytes take.",
        fix=_COMPARE if grouped else _CHANNELS_LAST,
        modules=modules_of(same),
        line=line_of(same),
        subject=_CONVOLUTION,
        count=kernels,
        small=not run.is_noticeable(spent),
    )


def _turns(one: CallGuess) -> int:
    """Count kernels that turn a tensor; none where the tensors are channels last already."""
    image = one.call.tensors[0]
    if len(image.shape) < 4 or image.strides[1] == 1:  # batch, channels, height, width
        return 0
    return sum(kernel.algorithm == _TURNED for kernel in one.activities.kernels or ())


def _us(run: Run, one: CallGuess) -> float:
    both: Sequence[int] = [2 * made.nbytes for made in (one.call.tensors[0], *one.call.outputs)]
    moved = sum(both[: _turns(one)])
    return moved / (_OF_BANDWIDTH * run.env.gpu.bandwidth) * 1e6 if run.env.gpu is not None else 0.0
