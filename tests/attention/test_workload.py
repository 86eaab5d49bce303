import pytest

from tracehunch.attention.workload import Workload, check
from tracehunch.errors import CaptureError

SEEDS = Workload(batch=8, heads=16, seq=1024, head_dim=64, kv_heads=16)


def test_the_score_matrix_of_the_seeds_is_256_mib():
    assert SEEDS.scores_bytes == 8 * 16 * 1024 * 1024 * 2 == 256 * 1024**2


def test_a_workload_reads_as_the_series_writes_it():
    assert str(SEEDS) == "(8,16,1024,64) bfloat16 causal"
    grouped = Workload(batch=2, heads=16, seq=32, head_dim=64, kv_heads=4, dtype="float16", causal=False)
    assert str(grouped) == "(2,16,32,64) with 4 key/value heads float16 full"
    assert grouped.groups == 4


@pytest.mark.parametrize("field", ["batch", "heads", "kv_heads", "seq", "head_dim"])
@pytest.mark.parametrize("size", [0, -3])
def test_sizes_below_one_are_refused_by_the_name_of_their_option(field, size):
    sizes = {"batch": 1, "heads": 4, "kv_heads": 4, "seq": 8, "head_dim": 8} | {field: size}
    with pytest.raises(CaptureError, match=f"--{field.replace('_', '-')} {size}"):
        check(Workload(**sizes))


def test_heads_must_be_a_multiple_of_key_value_heads_and_the_message_says_which_fit():
    with pytest.raises(CaptureError, match="1, 2, 3, 4, 6, 12"):
        check(Workload(batch=1, heads=12, kv_heads=5, seq=8, head_dim=8))


def test_a_possible_workload_comes_back_unchanged():
    assert check(SEEDS) is SEEDS
