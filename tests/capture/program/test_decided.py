"""Decisions that nearly always fall one way, and values that C++ would read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tracehunch.capture.program import record_call, record_program

torch = pytest.importorskip("torch")


def recorded(run: Any) -> tuple[Counter[str], list[Any]]:
    program = record_call(run, (), {})
    return Counter(one.op for one in program.calls), list(program.obstacles)


def test_losses_are_taken_as_finite():
    def run() -> Any:
        x = torch.randn(4, device="cuda")
        loss = x.exp().mean()
        if torch.isnan(loss) or loss.isinf() or not torch.isfinite(x).all():
            raise ValueError
        return loss.sqrt()

    ops, obstacles = recorded(run)
    assert not obstacles
    assert ops["aten::sqrt"] == 1
    assert ops["aten::_local_scalar_dense"] == 3


def test_a_known_infinity_is_seen():
    def run() -> Any:
        mask = torch.full((4,), float("inf"), device="cuda")
        return mask.sqrt() if torch.isinf(mask).all() else mask.exp()

    assert recorded(run)[0]["aten::sqrt"] == 1


def test_what_a_library_checks_holds():
    def run() -> Any:
        x = torch.randn(4, device="cuda")
        torch._check((x > 0).all().item())
        return torch.distributions.Normal(x, x.exp()).log_prob(x).sum()

    ops, obstacles = recorded(run)
    assert not obstacles
    assert ops["aten::sum"] == 1


def test_a_check_that_is_known_to_fail_fails():
    def run() -> None:
        torch.distributions.Normal(0.0, torch.full((2,), -1.0, device="cuda"), validate_args=True)

    with pytest.raises(Exception, match="scale"):
        record_call(run, (), {})


def test_nested_tensors_stop_the_recording():
    part = torch.randn(3, 8)

    def run() -> Any:
        return torch.nested.nested_tensor([part.cos(), part]).sin()

    ops, (obstacle,) = recorded(run)
    assert obstacle.stops
    assert obstacle.line.startswith("test_decided.py")
    assert ops["aten::cos"] == 1


def test_indices_on_the_host_are_copied(tmp_path):
    (tmp_path / "host_indices.py").write_text(
        "import torch\n"
        "def build():\n"
        "    table = torch.randn(8, 4, device='cuda', requires_grad=True)\n"
        "    at = torch.tensor([1, 2, 2])\n"
        "    return lambda: table[at].sum().backward()\n"
    )
    program = record_program("host_indices:build", search=tmp_path)
    crossing = [
        one
        for one in program.calls
        if one.op == "aten::_to_copy" and (*one.devices, *one.output_devices) == ("cpu", "cuda")
    ]
    assert [one.phase for one in crossing if one.tensors[0].dtype == "int64"] == ["forward", "backward"]


def test_sequences_are_packed_by_known_lengths():
    layer = torch.nn.GRU(4, 8)
    lengths = [5, 3, 2]
    utils = torch.nn.utils.rnn

    def run() -> Any:
        x = torch.randn(5, 3, 4, device="cuda", requires_grad=True)
        packed, _ = layer(utils.pack_padded_sequence(x, lengths))
        assert packed.data.shape == (10, 8)
        padded, found = utils.pad_packed_sequence(packed)
        assert found.tolist() == lengths
        padded.sum().backward()

    program = record_call(run, (), {})
    assert not program.obstacles
    assert Counter(one.op for one in program.calls)["aten::_cudnn_rnn_backward"] == 1


def test_values_that_c_reads_are_told():
    options = (False, 0.0, 4)

    def run() -> None:
        torch.ops.aten._pad_packed_sequence.default.decompose(
            torch.randn(4, 2), torch.randint(1, 2, (4,), device="cpu"), *options
        )

    _, (obstacle,) = recorded(run)
    assert obstacle.stops
    assert obstacle.line.startswith("test_decided.py")


CHECKS = """
import torch

def build():
    x, other = torch.randn(4, device="cuda"), torch.randn(4, device="cuda")

    def run():
        assert (x < 9).all(), f"too large: {x.shape}"
        if torch.any(x > 9) or x.min() < -9:
            raise ValueError("out of range")
        if not (x > -9).all():
            said = f"too small: {x.shape}"
            raise ValueError(said)
        assert torch.allclose(x, other)
        assert not torch.equal(x, other)
        if x.sum().item() > 99:
            raise ValueError("too much")
        return x.sqrt()

    return run
"""


def test_checks_that_raise_are_taken_to_hold(tmp_path):
    (tmp_path / "checking.py").write_text(CHECKS, encoding="utf-8")
    program = record_program("checking:build", search=tmp_path)
    assert not program.obstacles
    ops = Counter(one.op for one in program.calls)
    assert ops["aten::sqrt"] == ops["aten::equal"] == 1
    assert ops["aten::_local_scalar_dense"] == 6  # `equal` reads its own
    assert ops["aten::isfinite"] == 1  # of `allclose`, in pieces as on a GPU


@pytest.mark.parametrize("decide", ["if", "else", "while"])
def test_decisions_that_raise_neither_way_stop(decide):
    def run() -> Any:
        x = torch.randn(4, device="cuda")
        if decide == "if" and (x > 0).all():
            x = x.exp()
        if decide == "else":
            x = x.exp() if x.sum().item() > 0 else x.sin()
        while decide == "while" and (x > 0).any():
            x = x - 1
        return x

    (obstacle,) = recorded(run)[1]
    assert obstacle.stops


def test_gradients_are_looked_at_for_nan_where_the_program_asks():
    weight = torch.randn(4, requires_grad=True)

    def run() -> None:
        with torch.autograd.set_detect_anomaly(True):
            (weight * 2).sin().sum().backward()

    ops, obstacles = recorded(run)
    assert not obstacles
    assert ops["aten::_is_any_true"] == ops["aten::isnan"] == ops["aten::_local_scalar_dense"] == 3
