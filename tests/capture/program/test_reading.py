"""Values that a program reads: a number in an f-string is read as `item` reads it."""

from __future__ import annotations

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("values", [False, True])
def test_a_number_in_a_line_of_a_log_is_read(values):
    lines = []

    def run() -> None:
        loss = torch.ones(4, device="cuda", requires_grad=True).mul(2).sum()
        lines.append(f"loss {loss:.3f}, {loss:>9.1f}")

    program = record_call(run, values=values)
    assert not program.obstacles
    assert sum(one.op == "aten::_local_scalar_dense" for one in program.calls) == 2
    assert lines == ["loss 8.000,       8.0"]


def test_one_that_is_not_known_is_called_so():
    lines = []

    def run() -> None:
        lines.append(f"loss {torch.randn(4, device='cuda').sum():.3f}")

    assert not record_call(run).obstacles
    assert lines == ["loss unknown"]


def test_a_position_in_a_name_is_that_position():
    found = []

    def run() -> None:
        parts = {f"part_{at}": at for at in range(3)}
        found.extend(parts[f"part_{one}"] for one in torch.arange(3, device="cuda"))

    record_call(run)
    assert found == [0, 1, 2]


def test_more_numbers_have_no_format():
    def run() -> None:
        with pytest.raises(TypeError):
            format(torch.ones(2, device="cuda"), ".3f")
        assert "size=(2,)" in f"{torch.ones(2, device='cuda')}"

    assert not record_call(run).obstacles
