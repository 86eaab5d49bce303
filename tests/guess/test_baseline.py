"""A trace as a baseline: it holds on other runs of the same, and breaks where something changed."""

import gzip
import json
import time

import pytest

from tracehunch import api
from tracehunch.errors import GuessError, TracehunchError
from tracehunch.guess.baseline import baseline
from tracehunch.guess.context import context_of
from tracehunch.guess.hunch import parse_hunch
from tracehunch.guess.write import write_hunch
from tracehunch.trace import read, read_bytes

SAME = [
    *[
        (f"seeds/{name}", f"seeds/shapes_{name}")
        for name in ("naive", "naive_inplace", "sdpa_math", "sdpa_auto")
    ],
    *[(f"seeds/sdpa_{name}", f"seeds/shapes_sdpa_{name}") for name in ("efficient", "flash", "cudnn")],
    ("seeds/sdpa_flash", "seeds/stack_sdpa_flash"),
    ("seeds/shapes_naive", "seeds/naive"),
    ("models/llama_sdpa_train", "models/llama_sdpa_train_stack"),
]


@pytest.mark.parametrize(("before", "after"), SAME)
def test_a_baseline_holds_on_another_run_of_the_same(h200, before, after):
    guess = api.guess_from(h200 / f"{before}.json.gz", times=True)
    verdict = api.check(guess, h200 / f"{after}.json.gz").verdict
    assert not verdict.surprises
    assert not verdict.cannot_tell
    assert len(verdict.held) == len(guess.claims)


RECORDED = [
    "seeds/naive",
    "situations/gpt_recompiles",
    "situations/decode_cuda_graph",
    "ops/fwdbwd_math",
    "ranks/tp/rank0",
]


@pytest.mark.parametrize("name", RECORDED)
def test_a_baseline_holds_on_its_own_trace_after_the_file(h200, name):
    trace = read(h200 / f"{name}.json.gz")
    guess = api.guess_from(trace, times=True)
    hunch = parse_hunch(write_hunch(guess))
    assert hunch.guess == guess
    assert not hunch.edited
    verdict = api.check(hunch.guess, trace).verdict
    assert len(verdict.held) == len(guess.claims)


def test_what_is_claimed_of_the_naive_trace(h200):
    guess = api.guess_from(h200 / "seeds/naive.json.gz")
    assert {claim.scope for claim in guess.claims} == {"attn_fwd"}  # the steps own the same
    assert {claim.key: claim.expected for claim in guess.claims} == {
        "kernels": 5,
        "copies": 1,
        "copy_kernels": 0,
        "memsets": 1,
        "syncs": 0,
        "sdpa.backend": "none",
        "dtype": "bf16",
        "tensor_cores": "used",
    }
    assert {claim.who for claim in guess.claims} == {"baseline"}
    assert guess.context == {"device": "NVIDIA H200", "compute_capability": "9.0", "cuda": "13.0"}
    assert guess.known == (
        "hidden-copy in attn_fwd: aten::masked_fill x1",
        "unfused-attention in attn_fwd: aten::_softmax x1",
    )


def test_steps_are_claimed_only_where_they_own_more_than_an_annotation(h200):
    document = json.loads(gzip.decompress((h200 / "seeds/naive.json.gz").read_bytes()))
    wholly = api.guess_from(read_bytes(json.dumps(document).encode(), "as recorded"))
    assert {claim.scope for claim in wholly.claims} == {"attn_fwd"}
    spans = [e for e in document["traceEvents"] if e["name"] == "attn_fwd" and e["cat"] == "user_annotation"]
    spans[1]["dur"] /= 2  # what comes after is now the step's alone, in one call of three
    partly = api.guess_from(read_bytes(json.dumps(document).encode(), "changed"))
    assert {claim.scope for claim in partly.claims} == {"attn_fwd", "ProfilerStep"}


def test_a_trace_of_thousands_of_steps_makes_a_baseline_quickly():
    def call(number):
        at = {"ph": "X", "pid": 1, "tid": 1, "args": {}}
        start = number * 100
        return [
            {**at, "cat": "user_annotation", "name": f"ProfilerStep#{number}", "ts": start, "dur": 90},
            {**at, "cat": "user_annotation", "name": "fwd", "ts": start + 10, "dur": 70},
            {**at, "cat": "cpu_op", "name": "aten::mm", "ts": start + 20, "dur": 50},
        ]

    events = [event for number in range(5_000) for event in call(number)]
    facts = api.look(read_bytes(json.dumps({"traceEvents": events}).encode(), "constructed")).facts
    assert {claim.scope for claim in baseline(facts).claims} == {"fwd"}

    def seconds():
        began = time.thread_time()
        baseline(facts)
        return time.thread_time() - began

    assert any(seconds() < 0.5 for _ in range(5))  # a busy machine disturbs some of them


CHANGED = [
    ("naive", "naive_inplace", {"copies"}),
    ("naive_inplace", "naive", {"copies"}),
    ("sdpa_flash", "sdpa_math", {"kernels", "sdpa.backend", "dtype", "tensor_cores", "copy_kernels"}),
    ("sdpa_flash", "sdpa_efficient", {"sdpa.backend"}),
    ("sdpa_flash", "sdpa_cudnn", {"sdpa.backend", "memsets"}),
]


@pytest.mark.parametrize(("before", "after", "keys"), CHANGED)
def test_a_baseline_breaks_visibly_where_something_changed(h200, before, after, keys):
    guess = api.guess_from(h200 / f"seeds/{before}.json.gz")
    verdict = api.check(guess, h200 / f"seeds/{after}.json.gz").verdict
    assert {one.claim.key for one in verdict.surprises} == keys
    assert all(one.severity in ("error", "warning") for one in verdict.surprises)
    assert all(one.evidence for one in verdict.surprises)


def test_times_are_ranges_around_the_spread_and_only_on_demand(h200):
    path = h200 / "seeds/naive.json.gz"
    assert not [claim for claim in api.guess_from(path).claims if claim.unit == "us"]
    fact = api.look(path).facts.scope("attn_fwd").facts["gpu_time"]
    claim = next(claim for claim in api.guess_from(path, times=True).claims if claim.key == "gpu_time")
    assert claim.relation == "in"
    assert claim.expected[0] == pytest.approx(fact.low - 0.1 * fact.value, abs=0.001)
    assert claim.expected[1] == pytest.approx(fact.high + 0.1 * fact.value, abs=0.001)


def test_calls_that_differ_make_a_range(h200):
    text = gzip.decompress((h200 / "seeds/naive.json.gz").read_bytes())
    document = json.loads(text)
    events = document["traceEvents"]
    copies = [event for event in events if str(event.get("name", "")).startswith("Memcpy DtoD")]
    dropped = {copies[-1]["args"]["correlation"]}
    document["traceEvents"] = [
        event for event in events if (event.get("args") or {}).get("correlation") not in dropped
    ]
    guess = api.guess_from(read_bytes(json.dumps(document).encode(), "changed"), scopes=["attn_fwd"])
    claim = next(claim for claim in guess.claims if claim.key == "copies")
    assert (claim.relation, claim.expected, claim.why) == ("in", (0, 1), "calls differ")


def test_scopes_can_be_chosen(h200):
    path = h200 / "seeds/sdpa_math.json.gz"
    guess = api.guess_from(path, scopes=["aten::scaled_dot_product_attention", "sdpa_fwd", "sdpa_fwd"])
    assert list(dict.fromkeys(claim.scope for claim in guess.claims)) == [
        "aten::scaled_dot_product_attention",
        "sdpa_fwd",
    ]
    assert not api.check(guess, path).verdict.surprises
    with pytest.raises(GuessError, match=r"no scope 'sdpa_fw'; did you mean sdpa_fwd\?"):
        api.guess_from(path, scopes=["sdpa_fw"])
    with pytest.raises(GuessError, match="there are sdpa_fwd"):
        api.guess_from(path, scopes=["zzz"])


def test_a_cpu_trace_claims_leaf_ops_and_no_times(cases):
    guess = api.guess_from(cases / "cpu_only_no_dev.json", times=True)
    assert {claim.key for claim in guess.claims} >= {"leaf_ops"}
    assert not [claim for claim in guess.claims if claim.unit == "us"]
    assert "device" not in guess.context


def test_a_trace_with_nothing_in_it_claims_nothing(cases):
    with pytest.raises(GuessError, match="shows nothing to claim"):
        api.guess_from(cases / "empty_traceEvents.json")


def test_every_readable_case_makes_a_guess_that_holds_or_says_why_not(cases):
    made = 0
    for path in sorted(cases.iterdir()):
        try:
            trace = read(path)
            guess = api.guess_from(trace, times=True)
        except TracehunchError as error:
            assert str(error)  # noqa: PT017  # refused in one line is fine, a crash is not
            continue
        hunch = parse_hunch(write_hunch(guess), path.name)
        assert hunch.guess == guess, path.name
        verdict = api.check(guess, trace).verdict
        assert not verdict.surprises, path.name
        made += 1
    assert made > 60


def test_the_context_names_the_devices_that_were_used(h200):
    context = context_of(read(h200 / "ranks/ddp/rank1.json.gz"))
    assert context["device"] == "NVIDIA H200"
