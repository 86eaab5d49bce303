"""Ceilings: measured on the device that is there, near a plain timing of the same work."""

import time

import pytest

torch = pytest.importorskip("torch", reason="measures with PyTorch")

from tracehunch.capture.ceilings import measure_ceilings  # noqa: E402  # after the skip

MIB = 1 << 20


def test_a_copy_and_a_product_agree_with_a_timing_made_another_way() -> None:
    found = measure_ceilings("cpu", "float32", copy_bytes=64 * MIB, product_size=512)
    assert found is not None
    left = torch.randn(512, 512)
    left @ left
    begun = time.perf_counter()
    for _ in range(5):
        left @ left
    product = 5 * 2 * 512**3 / (time.perf_counter() - begun)
    # other work shares the processor: two orders of magnitude apart would be another unit
    assert 0.02 < product / found.matmul_flops_per_s < 50
    source = bytearray(64 * MIB)
    begun = time.perf_counter()
    bytes(source)
    plain = 2 * 64 * MIB / (time.perf_counter() - begun)
    assert 0.02 < plain / found.copy_bytes_per_s < 50
    assert found.dtype == "float32"


def test_a_type_that_the_device_cannot_multiply_has_no_ceiling() -> None:
    assert measure_ceilings("cpu", "bool", copy_bytes=MIB, product_size=64) is None


@pytest.mark.skipif(not torch.cuda.is_available(), reason="measures a GPU")
def test_what_would_take_too_much_memory_is_not_tried() -> None:
    free, _ = torch.cuda.mem_get_info()
    assert measure_ceilings("cuda", "bfloat16", copy_bytes=free) is None
