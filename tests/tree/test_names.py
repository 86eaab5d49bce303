import gzip
import json

import pytest

from tracehunch.trace import read
from tracehunch.tree.names import is_framework, names_that, step_number


@pytest.mark.parametrize(
    "name",
    [
        "Optimizer.step#AdamW.step",
        "Optimizer.zero_grad#SGD.zero_grad",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
        "nccl:all_reduce",
        "gloo:all_reduce",
        "DistributedDataParallel.forward",
        "FullyShardedDataParallel._pre_forward",
        "FSDP::all_gather (layers.0)",
        "## Call CompiledFxGraph fuuasuy4sanu ##",
        "## 12 ##",
        "Torch-Compiled Region: 0/0",
        "TorchDynamo Cache Lookup",
        "entire_frame_compile (dynamo_timed)",
        "compile_fx.<locals>.fw_compiler_base_data: compile_id=0/5",
        "CachingAutotuner.benchmark_all_configs_data: kernel_name=triton_poi_fused_gelu",
        "PP:0F1",
        "graph_0_inductor_wrapper_call",
    ],
)
def test_annotations_of_libraries(name):
    assert is_framework(name)


@pytest.mark.parametrize(
    "name",
    [
        "attn_fwd",
        "forward",
        "## forward ##",
        "## zero_grad ##",
        "load_data: step",
        "step[DECODE bs=32]",
        "optimizer",
        "",
    ],
)
def test_annotations_of_users(name):
    assert not is_framework(name)


def test_every_annotation_of_a_compilation_is_the_frameworks(h200):
    events = json.loads(gzip.decompress((h200 / "situations" / "gpt_recompiles.json.gz").read_bytes()))[
        "traceEvents"
    ]
    names = {event["name"] for event in events if event.get("cat") == "user_annotation"}
    assert len(names) > 100
    assert {name for name in names if not is_framework(name)} == {
        "step",
        "ProfilerStep#2",
        "ProfilerStep#3",
        "ProfilerStep#4",
    }


def test_number_of_a_step():
    assert step_number("ProfilerStep#12") == 12
    assert step_number("ProfilerStep#") == -1


def test_names_are_looked_at_once_for_each_question(h200):
    trace, asked = read(h200 / "seeds" / "naive.json.gz"), []

    def softmax():
        return names_that(trace, lambda name: "softmax" in name)

    assert softmax() is softmax()
    assert names_that(trace, frozenset({"aten::_softmax"}).__contains__).sum() == 1
    for word in ("softmax", "matmul"):  # a function that depends on more than the name is asked each time
        hit = names_that(trace, lambda name, word=word: not asked.append(name) and word in name)
        assert hit.tolist() == [word in name for name in trace.names]
    assert len(asked) == 2 * len(trace.names)
    with pytest.raises(ValueError, match="read-only"):
        softmax()[0] = True
