import gzip
import json

import pytest

from tracehunch.tree.names import is_framework, step_number


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
