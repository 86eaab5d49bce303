"""Expected percentages: blocks that fit an SM of 2,048 threads and 65,536 registers, worked out by hand."""

import pytest

from tracehunch.checks import occupancy_explained
from tracehunch.verdict import CannotTell, Finding


def results(facts):
    return list(occupancy_explained.check(facts))


def test_flash_is_limited_by_registers(facts_of):
    (found,) = results(facts_of("seeds/sdpa_flash"))
    # 255 registers are given out as 256: 2 blocks of 128 threads take all 65,536
    assert "12.50% (the profiler says 13%), limited by registers (255 a thread)" in found.summary
    assert "12% is normal" in found.cause
    assert "artefact" not in found.cause
    assert "Inside aten::_scaled_dot_product_flash_attention: 4 transposes of views." in found.cause
    assert (found.severity, found.time_at_stake_us) == ("note", 0.0)


def test_the_zero_of_cudnn_is_an_artefact_of_shared_memory_not_of_the_launch(facts_of):
    (found,) = results(facts_of("seeds/sdpa_cudnn"))
    # one block of 384 threads
    assert "18.75% (the profiler says 0%)" in found.summary
    assert "shared memory (131 KiB a block)" in found.summary
    assert "at most 48 KiB" in found.cause
    assert "cuLaunchKernelEx) is not the cause" in found.cause
    assert "Inside aten::_scaled_dot_product_cudnn_attention: no transposes." in found.cause


def test_exactly_48_kib_is_no_artefact(facts_of):
    (found,) = results(facts_of("seeds/sdpa_flash"))
    assert "48 KiB of shared memory" in found.cause


def test_a_small_grid_is_named_as_the_limit(facts_of):
    (found,) = results(facts_of("ops/decode_gqa_auto"))
    assert "limited by the grid (128 blocks for all SMs)" in found.summary
    assert "splits the keys" in found.fix


@pytest.mark.parametrize(
    "name", ["seeds/sdpa_efficient", "seeds/naive", "seeds/naive_inplace", "faults/opt_fused"]
)
def test_usual_occupancies_and_small_parts_are_not_explained(facts_of, name):
    assert results(facts_of(name)) == []


def test_of_the_matrix_kernels_only_the_leading_one_is_explained(facts_of):
    found = results(facts_of("faults/clean"))
    assert len(found) == 1
    assert found[0].severity == "note"


def test_torch_2_13_says_so_itself(raw, facts_from):
    """Constructed: the nested entry that torch 2.13 writes, in a trace of 2.11."""
    document = raw("seeds/sdpa_cudnn")
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel":
            event["args"]["occupancy"] = {"limitingFactors": "SMEM", "blockLimitSharedMem": 0}
    (found,) = results(facts_from(document))
    assert "blockLimitSharedMem 0" in found.cause


def test_without_registers_it_cannot_be_told(raw, facts_from):
    """Constructed as traces of AMD GPUs are: no registers, no shared memory, no estimate."""
    document = raw("seeds/sdpa_flash")
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel":
            for key in ("registers per thread", "shared memory", "est. achieved occupancy %"):
                event["args"].pop(key)
    (found,) = results(facts_from(document))
    assert isinstance(found, CannotTell)
    assert found.key == "occupancy-explained"


@pytest.mark.parametrize("name", ["tl_mi300_bert_small", "hta_mi250_rocm62"])
def test_public_amd_traces_cannot_be_told(public_traces, name):
    from tracehunch.facts import measure  # noqa: PLC0415  # only where the traces are
    from tracehunch.trace import read  # noqa: PLC0415  # loaded only where it is needed
    from tracehunch.tree import link  # noqa: PLC0415  # loaded only where it is needed

    found = results(measure(link(read(public_traces / f"{name}.json.gz"))))
    assert found
    assert not [one for one in found if isinstance(one, Finding)]
