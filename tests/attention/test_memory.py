import pytest

from tracehunch.attention import VARIANTS, memory
from tracehunch.attention.workload import Workload

BY_NAME = {variant.name: variant for variant in VARIANTS}
LONG = Workload(batch=1, heads=32, seq=65536, head_dim=64, kv_heads=32)


def test_what_cannot_fit_a_cpu_is_told_before_the_system_kills_the_process(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 1024**3)
    said = memory.shortage(BY_NAME["naive"], LONG)
    assert said is not None
    assert "2 score matrices of 256 GiB each" in said
    assert "8 GiB are available" in said
    assert "--seq" in said


def test_fused_variants_hold_no_score_matrix_and_are_let_run(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 8 * 1024**3)
    assert memory.shortage(BY_NAME["sdpa_flash"], LONG) is None


def test_nothing_is_refused_where_the_system_does_not_say_what_is_available(monkeypatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    assert memory.shortage(BY_NAME["naive"], LONG) is None


def test_running_out_says_what_the_variant_holds():
    assert "2 score matrices of 256 GiB" in memory.out_of_memory(BY_NAME["naive"], LONG)
    assert "score" not in memory.out_of_memory(BY_NAME["sdpa_auto"], LONG)


def test_every_way_of_running_out_of_memory_is_known():
    torch = pytest.importorskip("torch")
    assert memory.is_out_of_memory(MemoryError())
    assert memory.is_out_of_memory(torch.cuda.OutOfMemoryError("CUDA out of memory"))
    assert not memory.is_out_of_memory(RuntimeError("shapes do not fit"))
    with pytest.raises(RuntimeError) as raised:
        torch.empty(2**50, dtype=torch.uint8)
    assert memory.is_out_of_memory(raised.value)
