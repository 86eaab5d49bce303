"""Grow the trees that tell how many kernels a convolution runs, from some measured on an H200.

    python benchmarks/fit_convolutions.py > src/tracehunch/predict/ops/convolution.toml

Shapes are dealt by a hash of their numbers into eight parts: each is foretold by trees grown on the others.
"""

from __future__ import annotations

import gzip
import json
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trees import grow, toml_of

from tracehunch.predict.ops.convolution import family, features, output
from tracehunch.predict.ops.steps import Call
from tracehunch.predict.ops.tensor import Tensor, tensor
from tracehunch.predict.ops.trees import outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tracehunch.predict.ops.trees import Node, Outcome

TRUTH = Path(__file__).parent.parent / "tests" / "data" / "truth"
DATA = TRUTH / "convolutions_h200.jsonl.gz"
BACKWARD = TRUTH / "convolution_backward_h200.jsonl.gz"
PARTS = 8
DEPTH = 8
LEAST = 6  # convolutions in a leaf
BACK = (10, 4)  # the same two, of backwards
HEAD = """\
# Kernels and memsets of convolutions, a bias left out, printed by benchmarks/fit_convolutions.py: trees in
# depth-first order, [feature, threshold] for a branch (at most: the low side, which follows), [kernels,
# memsets, share of the convolutions in the leaf] for a leaf. Features: see features() in convolution.py.
source = "{count:,} convolutions of random shapes, profiled on an H200 with torch 2.11.0+cu130 (cuDNN 9.19)"

[trees]"""


@dataclass(frozen=True)
class Convolution:
    """One convolution, and what it ran."""

    call: Call
    transposed: bool
    ran: tuple[tuple[str, float], ...]

    @property
    def features(self) -> dict[str, float]:
        """What the trees ask."""
        return features(self.call, output(self.call, transposed=self.transposed))

    @property
    def outcome(self) -> tuple[int, int]:
        """Kernels and memsets, the kernel that adds a bias left out."""
        memsets = sum(name.startswith("Memset") for name, _ in self.ran)
        biased = len(self.call.tensors) > 2 and self.ran[-1][0] == "elementwise_kernel"
        return len(self.ran) - memsets - biased, memsets

    @property
    def part(self) -> int:
        """One of eight, by shape."""
        shapes = [one.shape for one in self.call.tensors[:2]]
        return zlib.crc32(repr((shapes, self.call.option("stride"))).encode()) % PARTS


def measured() -> Iterator[Convolution]:
    """Yield all convolutions; those of sequences as of images of one row."""
    with gzip.open(DATA, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            op, dtype, batch, channels, filters, side, window, stride, padding, groups, bias, last, ran = (
                json.loads(line)
            )
            transposed = op == "conv_t"
            outer, inner = (channels, filters) if transposed else (filters, channels // groups)
            shapes = ((batch, channels, side, side), (outer, inner, window, window))
            if op == "conv1d":
                shapes = ((batch, channels, 1, side), (outer, inner, 1, window))
                padding = (0, padding)
            tensors = [_laid_out(shape, dtype, last=last) for shape in shapes]
            tensors += [tensor((filters,), dtype)] if bias else []
            options = {"stride": stride, "padding": padding, "groups": groups, "transposed": transposed}
            call = Call("convolution", tuple(tensors), options)
            yield Convolution(call, transposed, tuple((name, us) for name, us in ran))


def measured_backward() -> Iterator[tuple[str, Convolution]]:
    """Yield all gradients of convolutions of images: of which, "input" or "weight", and what it ran."""
    with gzip.open(BACKWARD, "rt", encoding="utf-8") as lines:
        next(lines)
        for line in lines:
            of, dtype, batch, channels, filters, side, window, stride, padding, groups, last, ran = (
                json.loads(line)
            )
            shapes = ((batch, channels, side, side), (filters, channels // groups, window, window))
            tensors = tuple(_laid_out(shape, dtype, last=last) for shape in shapes)
            options = {"stride": stride, "padding": padding, "groups": groups}
            call = Call("convolution", tensors, options)
            yield of, Convolution(call, transposed=False, ran=tuple((name, us) for name, us in ran))


def _laid_out(shape: tuple[int, ...], dtype: str, *, last: bool) -> Tensor:
    if not last:
        return tensor(shape, dtype)
    _, channels, height, width = shape
    return Tensor(shape, dtype, (channels * height * width, 1, width * channels, channels))


def grown(
    rows: Sequence[Convolution], parts: Sequence[int], limits: tuple[int, int] = (DEPTH, LEAST)
) -> Node | Outcome:
    """Return the tree of the convolutions of some parts."""
    those = [one for one in rows if one.part in parts]
    return grow([one.features for one in those], [one.outcome for one in those], *limits)


def left_out(rows: Sequence[Convolution], limits: tuple[int, int] = (DEPTH, LEAST)) -> float:
    """Return the share of convolutions whose outcome a tree of the other parts foretells."""
    right = 0
    for held in range(PARTS):
        tree = grown(rows, [part for part in range(PARTS) if part != held], limits)
        for one in rows:
            if one.part == held:
                told = outcome_of(tree, one.features)
                right += (told.kernels, told.memsets) == one.outcome
    return right / len(rows)


def main() -> None:
    """Print the trees, with the share of unseen convolutions that they foretell."""
    rows = list(measured())
    print(HEAD.format(count=len(rows)))
    for name in ("plain", "depthwise", "transposed"):
        those = [one for one in rows if family(one.call, transposed=one.transposed) == name]
        print(f"# {len(those)} convolutions; of the parts left out in turn {left_out(those):.1%} exact")
        print(toml_of(name, grown(those, range(PARTS))))
    backwards = list(measured_backward())
    for name in ("plain", "depthwise"):
        for of in ("input", "weight"):
            kept = [one for which, one in backwards if which == of]
            those = [one for one in kept if family(one.call, transposed=False) == name]
            share = left_out(those, BACK)
            print(f"# {len(those)} gradients; of the parts left out in turn {share:.1%} exact")
            print(toml_of(f"{name}_{of}", grown(those, range(PARTS), BACK)))


if __name__ == "__main__":
    main()
