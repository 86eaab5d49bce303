"""All checks together: what they say of every recorded trace, in which order, and their pages."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tracehunch import checks
from tracehunch.checks import CHECKS, check_id, pages, run
from tracehunch.errors import ReadError
from tracehunch.facts import measure
from tracehunch.trace import read
from tracehunch.tree import link

DATA = Path(__file__).parents[1] / "data" / "h200"
DOCS = Path(__file__).parents[2] / "docs" / "checks.md"
TRACES = sorted(
    path.relative_to(DATA).as_posix().removesuffix(".json.gz") for path in DATA.rglob("*.json.gz")
)
HEADINGS = ("What it means", "Why it costs", "How to confirm", "How to fix", "When it is fine")

FALLBACK = {"sdpa-math-fallback", "tensor-cores-idle", "safe-softmax"}
WARNINGS = {
    # attention by hand; out-of-place masked_fill clones the scores, 12 % of the GPU time
    "seeds/naive": {"hidden-copy", "unfused-attention"},
    "seeds/shapes_naive": {"hidden-copy", "unfused-attention"},
    "seeds/naive_inplace": {"unfused-attention"},
    "seeds/shapes_naive_inplace": {"unfused-attention"},
    "ops/naive_compiled": {"unfused-attention"},
    # its products run in float32 on CUDA cores, as those of the planted faults do
    "ops/naive_fp32": {"fp32-matmul", "hidden-copy", "unfused-attention"},
    "faults/fp32_gemm": {"fp32-matmul"},
    "faults/two_streams": {"fp32-matmul"},
    # SDPA pinned to math, bfloat16 inputs; the mask takes 11 of 2617 us and is a note
    "seeds/sdpa_math": FALLBACK,
    "seeds/shapes_sdpa_math": FALLBACK,
    "ops/gqa_math": FALLBACK,
    "ops/fwdbwd_math": FALLBACK,
    # torch.compile made addmm of matmul and add: the addend is copied into the output, 8 %
    "ops/matmul_add_4096_compiled": {"bias-copy"},
    # softmax(dtype=float32) casts the scores (15 %), repeat_kv reshapes expanded heads (2 %),
    # matmul copies an operand (1 %)
    "models/llama_eager_prefill": {"hidden-copy", "unfused-attention"},
    # with a mask, keys and values are expanded and reshaped (5 %)
    "models/llama_sdpa_padded": {"hidden-copy", "overhead-bound"},
    # DDP copies buckets back into gradients, 72 copies a step
    "ranks/ddp/rank0": {"hidden-copy", "overhead-bound"},
    "ranks/ddp/rank1": {"hidden-copy"},
    # 43 to 70 ms inside cuDNN's attention in the first call of a length
    # there torch.compile also compiles a new version in each step
    "situations/gpt_recompiles": {"cpu-plan-cost", "recompile"},
    "situations/gpt_varying_lengths_cudnn": {"cpu-plan-cost", "overhead-bound"},
    # bfloat16 convolutions in NCHW run implicit_convolve_sgemm and dgrad_engine, at 14 and 18 TFLOP/s;
    # cuDNN transposes around the others (7 %)
    "situations/unet_nchw": {"layout-copy", "tensor-cores-idle"},
    # small work launched from Python: the GPU idles for 40 to 96 % of the time, before nearly every launch
    "faults/clean": {"overhead-bound"},
    "faults/dtype_pingpong": {"dtype-round-trip", "overhead-bound"},
    "faults/for_loop_index": {"for-loop-indexing", "overhead-bound"},
    "faults/opt_forloop": {"unfused-optimizer"},
    "faults/sync_item": {"overhead-bound", "sync-stall"},
    "faults/tiny_batch": {"overhead-bound"},
    "models/llama_sdpa_compiled": {"overhead-bound"},
    "models/llama_sdpa_generate": {"overhead-bound"},
    "models/llama_sdpa_prefill": {"overhead-bound"},
    "models/llama_sdpa_train": {"overhead-bound"},
    "models/llama_sdpa_train_stack": {"overhead-bound"},
    "ranks/tp/rank0": {"overhead-bound"},
    "situations/moe_loop_where_syncs": {"overhead-bound", "sync-stall"},
    # 3 ms of sleep a step, and small work after it
    "faults/cpu_stall": {"host-stall", "overhead-bound"},
    # copies of 16 and 32 MiB in each step
    "faults/h2d_pageable": {"pageable-copy"},
    "faults/h2d_pinned": {"copy-not-overlapped"},
    # empty_cache in each step
    "faults/alloc_churn": {"allocation-churn"},
    # all-reduces that wait for the other rank, with nothing beside them
    "ranks/tp/rank1": {"exposed-communication"},
}
"""No other trace has a warning of these checks."""


@pytest.mark.parametrize("name", TRACES)
def test_warnings_are_exactly_these(facts_of, name):
    found = run(facts_of(name)).findings
    assert {f.id for f in found if f.severity != "note"} == WARNINGS.get(name, set())
    assert not [f for f in found if f.severity == "error"]


@pytest.mark.parametrize("name", TRACES)
def test_findings_are_ranked_and_rest_on_evidence(facts_of, name):
    facts = facts_of(name)
    found = run(facts).findings
    stakes = [f.time_at_stake_us for f in found]
    assert stakes == sorted(stakes, reverse=True)
    names = {scope.scope.name for scope in facts.scopes}
    for finding in found:
        assert finding.evidence
        assert max(finding.evidence) < facts.tree.trace.n_events
        assert finding.scope in names
        assert finding.summary
        assert finding.cause
        assert finding.fix


@pytest.mark.parametrize("name", TRACES)
def test_no_more_is_at_stake_in_a_scope_than_its_time(facts_of, name):
    facts = facts_of(name)
    total = {}
    for finding in run(facts).findings:
        total[finding.scope] = total.get(finding.scope, 0.0) + finding.time_at_stake_us
    for scope in facts.scopes:
        calls = scope.scope.calls
        ends = [max([call.end_ns, *facts.tree.trace.end_ns()[call.gpu].tolist()]) for call in calls]
        lasted = sum(end - call.start_ns for end, call in zip(ends, calls, strict=True)) / 1e3 / len(calls)
        assert total.pop(scope.scope.name, 0.0) <= lasted + 0.01


@pytest.mark.parametrize("name", TRACES)
def test_a_fix_stands_alone(facts_of, name):
    """Annotations and pytest show it without the cause: it may not begin with what only the cause names."""
    for finding in run(facts_of(name)).findings:
        words = {word.strip(".,;:").lower() for word in finding.fix.split()[:3]}
        assert not {"it", "that", "this", "them", "they", "its"} & words, finding.fix


def test_a_finding_nested_in_another_yields_to_it(facts_of):
    found = {f.id: f for f in run(facts_of("seeds/sdpa_math")).findings}
    assert found["sdpa-math-fallback"].time_at_stake_us > 2000
    for nested in ("tensor-cores-idle", "safe-softmax", "mask-rebuilt"):
        assert found[nested].time_at_stake_us == 0
        assert "counted under sdpa-math-fallback" in found[nested].cause


def test_the_series_findings_come_out_of_the_math_trace(facts_of):
    found = {f.id for f in run(facts_of("seeds/sdpa_math")).findings}
    assert found >= {"sdpa-math-fallback", "tensor-cores-idle", "mask-rebuilt", "safe-softmax"}


def test_a_check_that_raises_becomes_a_cannot_tell(facts_of, monkeypatch):
    def explode(_facts):
        raise ZeroDivisionError("on purpose")

    broken = SimpleNamespace(__name__="tracehunch.checks.hidden_copy", check=explode)
    monkeypatch.setattr(checks, "CHECKS", (broken, *CHECKS[1:]))
    seen = run(facts_of("seeds/sdpa_math"))
    (told,) = [c for c in seen.cannot_tell if c.key == "hidden-copy"]
    assert told.scope == "whole"
    assert "on purpose" in told.reason
    assert {f.id for f in seen.findings} >= FALLBACK


@pytest.mark.parametrize("name", TRACES)
def test_the_same_trace_gives_the_same_findings(facts_of, name):
    assert run(facts_of(name)) == run(facts_of(name))


def test_ids_are_those_of_their_files():
    assert [check_id(module) for module in CHECKS] == [module.ID for module in CHECKS]
    assert len(set(pages())) == len(CHECKS)


@pytest.mark.parametrize("module", CHECKS, ids=check_id)
def test_each_page_has_the_fixed_headings_in_order(module):
    page = pages()[check_id(module)]
    assert page.startswith(f"# {check_id(module)}: ")
    headings = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    assert tuple(headings) == HEADINGS


def test_the_index_in_the_docs_is_in_step():
    rows = [line for line in DOCS.read_text(encoding="utf-8").splitlines() if line.startswith("| [")]
    expected = []
    for name, page in pages().items():
        title = page.splitlines()[0].removeprefix(f"# {name}: ")
        source = f"../src/tracehunch/checks/{name.replace('-', '_')}.py"
        expected.append(f"| [{name}]({source}) | {title} |")
    assert rows == expected


def no_check_failed(path):
    seen = run(measure(link(read(path))))
    assert [c for c in seen.cannot_tell if c.reason.startswith("the check failed")] == []


def test_no_check_fails_on_damaged_or_odd_files(cases):
    readable = 0
    for path in sorted(cases.iterdir()):
        try:
            no_check_failed(path)
            readable += 1
        except ReadError:
            continue
    assert readable > 50


def test_no_check_fails_on_other_projects_traces(public_traces):
    for path in sorted(public_traces.glob("*.json.gz")):
        no_check_failed(path)
