"""Ceilings: work over time, the fastest repetition, and None where there can be none."""

from types import SimpleNamespace

import pytest

torch = pytest.importorskip("torch", reason="measures with PyTorch")

from tracehunch.capture import ceilings  # noqa: E402  # after the skip

MIB = 1 << 20


def test_rates_are_the_work_that_was_done_over_the_time_it_took(monkeypatch) -> None:
    """The clock is replaced by one that gives a copy 1 ms and a product 2 ms; the work itself is counted."""
    done: list[torch.Tensor] = []
    seconds = iter([1e-3, 2e-3])

    def clock(_torch, _device, work) -> float:
        done.append(work())
        return next(seconds)

    monkeypatch.setattr(ceilings, "_best_s", clock)
    found = ceilings.measure_ceilings("cpu", "float32", copy_bytes=MIB, product_size=64)
    assert found is not None
    copied, product = done
    assert copied.nbytes == MIB
    assert product.shape == (64, 64)
    assert found.copy_bytes_per_s == pytest.approx(2 * copied.nbytes / 1e-3)
    assert found.matmul_flops_per_s == pytest.approx(2 * 64**3 / 2e-3)
    assert found.dtype == "float32"


def test_the_clock_takes_the_fastest_of_its_repetitions(monkeypatch) -> None:
    """Time passes only while work is done: 5 s the first time, which warms up, then 20 ms, once 1 ms."""
    took_s = [5, 0.02, 0.02, 0.001, 0.02, 0.02]
    runs: list[float] = []
    monkeypatch.setattr(ceilings, "time", SimpleNamespace(perf_counter=lambda: sum(runs)))
    best_s = ceilings._best_s(torch, "cpu", lambda: runs.append(took_s[len(runs)]))
    assert best_s == pytest.approx(0.001)
    assert runs == took_s  # one before the clock runs, and five


def test_a_type_that_the_device_cannot_multiply_has_no_ceiling() -> None:
    assert ceilings.measure_ceilings("cpu", "bool", copy_bytes=MIB, product_size=64) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="measures a GPU")
def test_what_would_take_too_much_memory_is_not_tried() -> None:
    free, _ = torch.cuda.mem_get_info()
    assert ceilings.measure_ceilings("cuda", "bfloat16", copy_bytes=free) is None
