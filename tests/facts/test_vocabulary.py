import pytest

from tracehunch.facts import KEYS, MEANINGS, measure
from tracehunch.trace import read
from tracehunch.tree import link


def test_the_keys_of_the_design_are_there():
    assert set(KEYS) >= {
        "kernels",
        "copies",
        "copies.dtod",
        "copies.htod",
        "copies.dtoh",
        "copies.ptop",
        "copy_kernels",
        "any_copies",
        "memsets",
        "leaf_ops",
        "gpu_time",
        "gpu_busy",
        "wall_time",
        "cpu_time",
        "gpu_idle",
        "launches",
        "launch_api",
        "launch_time",
        "queue_delay",
        "syncs",
        "sync_time",
        "allocations",
        "dominant",
        "sdpa.backend",
        "dtype",
        "tensor_cores",
        "bound",
        "flops",
        "hbm_bytes",
        "achieved_flops",
        "achieved_bandwidth",
        "occupancy",
        "fused",
        "graph",
        "compiled",
    }


def test_every_key_has_a_meaning_and_times_say_their_unit():
    assert set(MEANINGS) == set(KEYS)
    assert all(key.meaning for key in KEYS.values())
    assert KEYS["gpu_time"].json_name == "gpu_time_us"
    assert KEYS["kernels"].json_name == "kernels"


@pytest.mark.parametrize(
    "name", ["seeds/naive", "models/llama_sdpa_train", "situations/gpt_recompiles", "ops/cudagraph_flash"]
)
def test_every_fact_is_of_the_vocabulary(h200, name):
    facts = measure(link(read(h200 / f"{name}.json.gz")))
    for scope in facts.scopes:
        assert list(scope.facts) == [key for key in KEYS if key in scope.facts]
        for key, fact in [*scope.facts.items(), *scope.own_thread.items()]:
            assert fact.key == key
            assert fact.unit == KEYS[key].unit
            kind = {
                "count": int,
                "bytes": int,
                "rate": int,
                "time": float,
                "ratio": float,
                "text": (str, tuple),
                "list": tuple,
            }
            assert isinstance(fact.value, kind[KEYS[key].kind]), key
