"""Occupancy: against what traces record, and where they record nothing useful."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehunch.hardware import MEASURABLE_SHARED_MEMORY, SmLimits, limits_of, occupancy

# registers a thread, shared memory, threads a block, blocks per SM, recorded occupancy in percent; trace
RECORDED = [
    (17, 0, 256, 2.545455, 32),  # situations/gpt_recompiles
    (22, 0, 256, 0.060606, 1),  # situations/unet_nchw
    (23, 0, 128, 0.257576, 2),  # models/llama_sdpa_generate
    (24, 0, 512, 0.94697, 24),  # models/llama_sdpa_train
    (27, 0, 512, 0.181818, 5),  # faults/opt_fused
    (27, 32, 256, 1.818182, 23),  # situations/gpt_recompiles
    (28, 32, 256, 1.69697, 21),  # situations/gpt_recompiles
    (30, 0, 128, 1.272727, 8),  # situations/gpt_recompiles
    (31, 0, 128, 5.454545, 34),  # situations/gpt_recompiles
    (32, 0, 96, 14.454545, 68),  # situations/moe_loop_where_syncs
    (32, 0, 96, 15.424242, 72),  # situations/moe_loop_where_syncs
    (32, 0, 96, 16.939394, 79),  # situations/moe_loop_where_syncs
    (32, 0, 128, 0.969697, 6),  # models/llama_sdpa_generate
    (32, 0, 128, 45.954544, 100),  # situations/moe_loop_where_syncs
    (32, 2064, 512, 3.878788, 97),  # ops/fwdbwd_cudnn
    (32, 4112, 512, 0.007576, 0),  # models/llama_sdpa_padded
    (34, 0, 128, 52.363636, 75),  # situations/gpt_varying_lengths_cudnn
    (44, 0, 256, 3.878788, 48),  # ops/fwdbwd_flash
    (48, 0, 128, 124.121216, 63),  # models/llama_eager_prefill
    (54, 2064, 128, 15.515152, 56),  # ranks/ddp/rank0
    (61, 0, 512, 1.818182, 45),  # ranks/ddp/rank0
    (64, 0, 32, 992.969727, 50),  # ops/naive_compiled
    (64, 2304, 64, 496.484863, 50),  # situations/unet_nchw
    (69, 4096, 128, 31.030304, 44),  # models/llama_sdpa_compiled
    (94, 0, 32, 31.030304, 31),  # models/llama_sdpa_compiled: a warp's registers lie in one partition
    (95, 0, 128, 124.121216, 31),  # ops/fwdbwd_math
    (128, 18944, 128, 7.757576, 25),  # ops/fwdbwd_efficient
    (168, 36352, 128, 7.757576, 19),  # ops/fp32_auto
    (255, 33792, 128, 1.939394, 12),  # faults/fp32_gemm
    (255, 33792, 128, 62.060608, 13),  # ops/gqa_math
    (255, 49152, 128, 3.878788, 13),  # ops/fwdbwd_flash
    (255, 49152, 128, 7.757576, 13),  # ops/cudagraph_flash
]


def sm(compute_capability: str) -> SmLimits:
    limits = limits_of(compute_capability)
    assert limits is not None
    return limits


@pytest.mark.parametrize(("registers", "shared", "threads", "blocks", "recorded"), RECORDED)
def test_the_recorded_occupancy_is_found_again(registers, shared, threads, blocks, recorded) -> None:
    assert shared <= MEASURABLE_SHARED_MEMORY
    found = occupancy(
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_memory_bytes=shared,
        blocks_per_sm=blocks,
        sm=sm("9.0"),
    )
    assert int(found.percent + 0.5) == recorded


@pytest.mark.parametrize(
    ("capability", "threads", "registers", "shared", "active", "limited_by", "percent"),
    [
        # recorded as 0 %, since they opted in to more than 48 KiB
        ("9.0", 384, 168, 213_220, 1, "registers", 18.75),  # nvjet
        ("9.0", 128, 255, 114_688, 2, "registers", 12.5),  # FlexAttention's template
        ("8.0", 128, 255, 65_536, 2, "registers", 12.5),  # FlashAttention 2 at head dimension 128
        ("8.0", 256, 240, 51_200, 1, "registers", 12.5),
        ("8.0", 128, 64, 81_920, 2, "shared memory", 12.5),
        # what cuda_occupancy.h says below that
        ("8.0", 128, 255, 49_152, 2, "registers", 12.5),
        ("9.0", 1024, 32, 0, 2, "registers", 100.0),
        ("9.0", 1024, 16, 0, 2, "warps", 100.0),
        ("9.0", 32, 16, 0, 32, "blocks", 50.0),
        ("7.5", 256, 32, 0, 4, "warps", 100.0),
        ("8.6", 256, 32, 0, 6, "warps", 100.0),
    ],
)
def test_theoretical_occupancy(  # noqa: PLR0917  # the columns of the table above
    capability, threads, registers, shared, active, limited_by, percent
) -> None:
    found = occupancy(
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_memory_bytes=shared,
        blocks_per_sm=1_000.0,
        sm=sm(capability),
    )
    assert found.active_blocks == active
    assert found.limited_by == limited_by
    assert found.percent == found.theoretical_percent == pytest.approx(percent)
    assert dict(found.limits)[limited_by] == active


def test_a_small_grid_limits() -> None:
    found = occupancy(
        threads_per_block=128, registers_per_thread=32, shared_memory_bytes=0, blocks_per_sm=0.5, sm=sm("9.0")
    )
    assert found.limited_by == "grid"
    assert found.percent == pytest.approx(3.125)
    assert found.theoretical_percent == pytest.approx(100.0)


def test_a_kernel_that_does_not_fit() -> None:
    found = occupancy(
        threads_per_block=1024,
        registers_per_thread=255,
        shared_memory_bytes=0,
        blocks_per_sm=4.0,
        sm=sm("9.0"),
    )
    assert (found.active_blocks, found.percent, found.limited_by) == (0, 0.0, "registers")


def test_a_block_without_threads_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one thread"):
        occupancy(
            threads_per_block=0, registers_per_thread=1, shared_memory_bytes=0, blocks_per_sm=1, sm=sm("9.0")
        )


@given(
    threads=st.integers(1, 1024),
    registers=st.integers(0, 255),
    shared=st.integers(0, 232_448),
    blocks=st.floats(0, 1e6),
    capability=st.sampled_from(["7.0", "7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "12.0"]),
)
def test_occupancy_is_a_share(threads, registers, shared, blocks, capability) -> None:
    found = occupancy(
        threads_per_block=threads,
        registers_per_thread=registers,
        shared_memory_bytes=shared,
        blocks_per_sm=blocks,
        sm=sm(capability),
    )
    assert 0 <= found.percent <= found.theoretical_percent <= 100.0
    assert found.active_blocks <= sm(capability).blocks
