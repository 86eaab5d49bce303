"""Facts of what the recorded traces do not have."""

import pytest

from tracehunch.facts import measure_rows
from tracehunch.facts.sdpa import backend_of_op


def test_keys_of_torch_2_13_are_read(facts_of, row, device):
    """Constructed: torch 2.13 writes ``occupancy{...}``, ``graph id`` and ``graph node id``."""
    recorded = {"registers per thread": 255, "shared memory": 49152, "blocks per SM": 2.0, "graph id": 3}
    recorded |= {"block": [128, 1, 1], "grid": [264, 1, 1], "occupancy": {"activeBlocksPerMultiprocessor": 2}}
    events = [
        row("user_annotation", "f", 0, 50),
        row("cuda_runtime", "cudaGraphLaunch", 10, 5, correlation=4),
    ]
    for node in (2, 1):
        args = recorded | {"graph node id": node, "correlation": 4}
        events.append(row("kernel", f"k{node}", 100 + 10 * node, 5, **args))
    facts = facts_of(events, deviceProperties=[device])
    assert facts.tree.trace.gpu.graph_node_id.tolist() == [2, 1]
    assert facts.scope("f").value("graph.activities") == 2
    assert facts.scope("f").value("occupancy") == 12.5


def test_amd_has_no_occupancy(facts_of, row):
    events = [
        row("user_annotation", "f", 0, 50),
        row("cuda_runtime", "hipLaunchKernel", 10, 5, correlation=4),
        row(
            "kernel",
            "Cijk_Ailk_Bljk_BBS_MT128x128x32_MI16x16x1",
            20,
            5,
            correlation=4,
            grid=[304, 1, 1],
            block=[256, 1, 1],
        ),
    ]
    device = {
        "id": 0,
        "name": "AMD Instinct MI300X",
        "warpSize": 64,
        "numSms": 304,
        "maxThreadsPerMultiprocessor": 2048,
    }
    scope = facts_of(events, deviceProperties=[device]).scope("f")
    assert "occupancy" not in scope.facts
    assert scope.kernels[0].occupancy_percent is None


def test_allocator_instants_add_up_on_the_gpu_only(facts_of, row):
    events = [row("user_annotation", "f", 0, 50), row("cpu_op", "aten::empty", 5, 5)]
    for ts, size, device in ((10, 512, 1), (20, 1024, 1), (25, -512, 1), (30, 4096, 0), (60, 2048, 1)):
        args = {"Bytes": size, "Device Type": device, "Device Id": 0, "Addr": 1}
        events.append(
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": 1,
                "tid": 1,
                "ts": ts,
                "args": args,
            }
        )
    facts = facts_of(events, profile_memory=1)
    assert facts.scope("f").value("allocated_bytes") == 1536
    assert facts.scope("whole").value("allocated_bytes") == 3584


def test_counts_take_the_lower_median_and_times_the_mean_of_the_middle(facts_of, row):
    events = []
    for number, (start, copies) in enumerate(((0, 1), (100, 2))):
        events.append(row("user_annotation", "f", start, 90))
        for k in range(copies):
            correlation = 10 * number + k + 1
            events.append(
                row("cuda_runtime", "cudaMemcpyAsync", start + 10 * k + 1, 2, correlation=correlation)
            )
            name = "Memcpy HtoD (Pinned -> Device)"
            events.append(row("gpu_memcpy", name, start + 10 * k + 5, 4, correlation=correlation, bytes=4000))
    scope = facts_of(events).scope("f")
    assert (scope.value("copies.htod"), scope.facts["copies.htod"].low, scope.facts["copies.htod"].high) == (
        1,
        1,
        2,
    )
    assert scope.value("gpu_time") == 6.0
    assert scope.value("copy_bytes") == 4000
    assert scope.value("copy_bandwidth") == 10**9


def test_a_kernel_of_another_process_does_not_stand_in_for_a_lost_one(facts_of, row):
    """Both processes have launch 1; the first one's kernel is lost."""
    events = []
    for pid, device, start in ((1, 0, 0), (2, 1, 1000)):
        for number in (1, 2):
            call = row("cuda_runtime", "cudaLaunchKernel", start + 10 * number, 5, correlation=number)
            events.append(call | {"pid": pid})
            if (pid, number) != (1, 1):
                kernel = row("kernel", "k", start + 100 * number, 5, correlation=number, device=device)
                events.append(kernel | {"pid": device})
    counts = facts_of(events).counts
    assert counts["n_launches"] == 4
    assert counts["n_launches_without_gpu_op"] == 1
    assert counts["n_orphan_gpu_ops"] == 0


def test_launches_without_a_correlation_are_counted(facts_of, row):
    calls = [row("cuda_runtime", "cudaLaunchKernel", 10 * k, 5, correlation=k) for k in range(3)]
    counts = facts_of([*calls, row("kernel", "k", 50, 5, correlation=2)]).counts
    assert (counts["n_launches"], counts["n_launches_without_gpu_op"]) == (3, 2)


def test_the_profilers_last_wait_is_not_the_programs(facts_of, row):
    events = [
        row("user_annotation", "ProfilerStep#1", 0, 50),
        row("cuda_runtime", "cudaStreamSynchronize", 30, 10, correlation=1),
        row("cuda_runtime", "cudaDeviceSynchronize", 60, 10, correlation=2),
    ]
    facts = facts_of(events)
    assert facts.scope("ProfilerStep").value("syncs") == 1
    assert facts.scope("whole").value("syncs") == 1
    assert facts.scope("whole").value("sync_time") == 10.0


def test_a_replay_without_an_attention_kernel_does_not_tell_the_backend(facts_of, row):
    events = [
        row("user_annotation", "f", 0, 50),
        row("cpu_op", "aten::add", 1, 5),
        row("cuda_runtime", "cudaGraphLaunch", 10, 5, correlation=4),
        row("kernel", "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_TNN", 20, 5, correlation=4),
    ]
    assert "sdpa.backend" not in facts_of(events).scope("f").facts
    assert facts_of(events[:2]).scope("f").value("sdpa.backend") == "none"


def test_backends_that_differ_are_all_named(facts_of, row):
    events = [
        row("user_annotation", "f", 0, 50),
        row("cpu_op", "aten::_scaled_dot_product_flash_attention", 1, 5),
        row("cpu_op", "aten::_scaled_dot_product_attention_math", 10, 5),
    ]
    assert facts_of(events).scope("f").value("sdpa.backend") == ("math", "flash")


@pytest.mark.parametrize(
    ("op", "backend"),
    [
        ("aten::_scaled_dot_product_flash_attention_for_cpu", "flash"),
        ("aten::_scaled_dot_product_flash_attention_backward", "flash"),
        ("aten::_flash_attention_forward", "flash"),
        ("flash_attn::_flash_attn_forward", "flash"),
        ("aten::_scaled_dot_product_efficient_attention", "efficient"),
        ("aten::_efficient_attention_backward", "efficient"),
        ("aten::_scaled_dot_product_cudnn_attention", "cudnn"),
        ("aten::_scaled_dot_product_attention_math", "math"),
        ("aten::_scaled_dot_product_attention_math_for_mps", "math"),
        ("aten::_scaled_dot_product_fused_attention_overrideable", "overrideable"),
        ("triton_tem_fused_flex_attention_0", "flex"),
        ("aten::scaled_dot_product_attention", None),
        ("triton_poi_fused__scaled_dot_product_cudnn_attention__to_copy_3", None),
        ("aten::softmax", None),
    ],
)
def test_backend_of_an_op(op, backend):
    assert backend_of_op(op) == backend


def test_host_time_of_a_cpu_trace_names_the_ops_called(facts_of, row):
    events = [
        row("user_annotation", "f", 0, 100),
        row("cpu_op", "aten::linear", 1, 40, **{"Input type": ["float", "float"]}),
        row("cpu_op", "aten::addmm", 2, 30, **{"Input type": ["float", "float"]}),
        row("cpu_op", "autograd::engine::evaluate_function: MulBackward0", 50, 30),
        row("cpu_op", "MulBackward0", 51, 28),
        row("cpu_op", "aten::mul", 52, 10, **{"Input type": ["c10::BFloat16", "Scalar"]}),
    ]
    scope = facts_of(events, record_shapes=1).scope("f")
    assert scope.value("dominant") == ("aten::linear", "aten::mul")
    assert scope.value("dtype") == "fp32"
    assert scope.value("leaf_ops") == 2
    assert scope.value("cpu_time") == 70.0


def test_any_rows_can_be_measured_like_a_scope(facts_of, row):
    events = [row("user_annotation", "f", 0, 100)]
    for number, start in enumerate((10, 50)):
        events += [
            row("cpu_op", "aten::matmul", start, 20),
            row("cpu_op", "aten::matmul", start + 1, 15),
            row("cuda_runtime", "cudaLaunchKernel", start + 3, 2, correlation=number + 1),
            row("kernel", "k", start + 10, 4 + number, correlation=number + 1),
        ]
    tree = facts_of(events).tree
    rows = [r for r in tree.ops.tolist() if tree.trace.name_of(r) == "aten::matmul"]
    found = measure_rows(tree, "aten::matmul", rows)
    assert len(found.scope.calls) == 2
    assert found.value("kernels") == 1
    assert found.value("gpu_time") == 4.5


def test_an_annotation_that_never_ended_has_no_facts(facts_of, row):
    events = [row("user_annotation", "f", 0, -1), row("cpu_op", "aten::mm", 1, 5)]
    assert facts_of(events).scope("f") is None
