"""Weights in files, and operations of the program's own."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")

if TYPE_CHECKING:
    from pathlib import Path


def test_safetensors_are_opened_without_reading_numbers(tmp_path: Path) -> None:
    save = pytest.importorskip("safetensors.torch")
    path = tmp_path / "weights.safetensors"
    save.save_file({"a": torch.ones(2, 3, dtype=torch.bfloat16), "b": torch.arange(4)}, path)
    seen = {}

    def load() -> object:
        loaded = save.load_file(path, device="cuda")
        seen.update({name: (tuple(one.shape), one.dtype, one.device.type) for name, one in loaded.items()})
        return loaded["b"].sum() == 6 or None

    record_call(load)
    assert seen == {"a": ((2, 3), torch.bfloat16, "cuda"), "b": ((4,), torch.int64, "cuda")}
    assert not record_call(lambda: bool(load()), values=True).obstacles
    assert torch.equal(save.load_file(path)["b"], torch.arange(4))


def test_a_function_that_was_imported_meanwhile_is_the_original_afterwards() -> None:
    kept = []

    def run() -> None:
        kept.append(torch.cuda.is_available)
        kept.append(torch.cuda.is_available())

    record_call(run)
    function, there = kept
    assert there is True
    assert function() is torch.cuda.is_available()

    def again() -> None:
        assert function()

    record_call(again)


def test_a_pool_of_threads_is_part_of_the_recording() -> None:
    def run() -> None:
        with ThreadPoolExecutor(2) as pool:
            made = pool.submit(lambda: torch.ones(2).to("cuda"))
        made.result() * 2

    assert [call.op for call in record_call(run).calls][-2:] == ["aten::_to_copy", "aten::mul"]


def test_an_operation_without_a_fake_kernel_stops() -> None:
    @torch.library.custom_op("tracehunch_test::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    program = record_call(lambda: twice(torch.ones(2, device="cuda")))
    (told,) = program.obstacles
    assert told.stops
    assert "twice" in told.reason
    assert "register_fake" in told.remedy
    twice.register_fake(torch.empty_like)
    assert record_call(lambda: twice(torch.ones(2, device="cuda"))).calls[-1].op == "tracehunch_test::twice"
