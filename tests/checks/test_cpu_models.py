"""Ordinary models on a CPU: what PyTorch's own ops do there is nobody's fault, and times are noisy."""

import gzip
import json
import re
from dataclasses import replace

import pytest

from tracehunch.checks import run
from tracehunch.checks._sdpa_inputs import SdpaInputs, obstacles
from tracehunch.facts import measure
from tracehunch.predict.environment import environment
from tracehunch.predict.sdpa import SdpaCall, tensor
from tracehunch.trace import read
from tracehunch.tree import link

ORDINARY = (
    "linear_bias",
    "linear_nobias",
    "train_mlp",
    "mha",
    "encoder_eval",
    "layernorm",
    "conv",
    "sdpa_dropout",
)


@pytest.fixture
def findings_of(cpu):
    return lambda name: run(measure(link(read(cpu / f"{name}.json.gz")))).findings


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_models_get_no_warning(findings_of, name):
    assert [one.summary for one in findings_of(name) if one.severity != "note"] == []


def test_the_bias_of_a_linear_layer_is_no_finding(findings_of):
    assert findings_of("linear_bias") == findings_of("linear_nobias") == ()


@pytest.mark.parametrize(
    ("name", "finding", "said"),
    [
        ("masked_fill", "hidden-copy", "aten::masked_fill hides 1 copy"),
        ("handattn", "hidden-copy", "aten::matmul hides 3 copies"),
        ("sdpa_math", "sdpa-math-fallback", "SDPA ran its math fallback"),
    ],
)
def test_what_the_program_can_do_without_is_a_warning(findings_of, name, finding, said):
    found = [one for one in findings_of(name) if one.severity == "warning"]
    assert any(one.id == finding and one.summary.startswith(said) for one in found)


def test_dropout_keeps_the_fused_kernel_for_cpus_away(findings_of):
    (found,) = [one for one in findings_of("sdpa_dropout") if one.id == "sdpa-math-fallback"]
    assert (found.severity, "flash: dropout 0.1" in found.cause) == ("note", True)
    assert "dropout_p=0.0" in found.fix


def inputs(shapes, dtype="float32", stride=None, **others):
    q, k, v = (tensor(shape, dtype) for shape in shapes)
    if stride is not None:
        q, k, v = (replace(given, stride=stride) for given in (q, k, v))
    return SdpaInputs(SdpaCall(q, k, v, **others), (environment(torch="2.13", device="cpu"),))


SAME = ((2, 4, 16, 32),) * 3
CPU = [  # each was tried with torch 2.13: which of them ran the fused kernel for CPUs
    (inputs(SAME), True),
    (inputs(SAME, dtype="float64"), True),
    (inputs(SAME, dropout=0.1), False),
    (inputs(((2, 4, 16, 32), (2, 2, 16, 32), (2, 2, 16, 32)), enable_gqa=True), True),
    (inputs(((4, 16, 32),) * 3), False),
    (inputs((*SAME[:2], (2, 4, 16, 64))), False),
    (inputs(SAME, stride=(2048, 512, 1, 16)), False),
    (inputs(SAME, mask=tensor((16, 16), "bool")), True),
    (inputs(SAME, mask=tensor((4, 16, 16), "bool")), False),
    (inputs(((2, 4, 16, 32), (1, 4, 16, 32), (1, 4, 16, 32))), False),
]


@pytest.mark.parametrize(("given", "fused"), CPU)
def test_what_keeps_the_fused_kernel_for_cpus_away(given, fused):
    assert (obstacles(given) == []) == fused


def copies_of(document):
    """Return the copies of tensors; the trace has casts of a single number beside them."""
    ops = [
        e for e in document["traceEvents"] if e.get("name") == "aten::copy_" and e["args"]["Input Dims"][0]
    ]
    return sorted(ops, key=lambda event: event["ts"])


def stretched(document, times):
    """Give the copies of the four calls these durations in microseconds."""
    for event, microseconds in zip(copies_of(document), times, strict=True):
        event["dur"] = microseconds
    return document


@pytest.mark.parametrize(
    ("part", "times", "severity"),
    [
        ("of all calls", (0.3, 0.3, 0.3, 0.3), "warning"),
        ("with one call disturbed", (0.3, 0.3, 0.3, 0.02), "warning"),
        ("of no call", (0.05, 0.05, 0.05, 0.05), "note"),
        ("of one call that was disturbed", (0.05, 0.9, 0.05, 0.05), "note"),
    ],
)
def test_one_disturbed_call_changes_no_severity(cpu, facts_from, part, times, severity):
    """Constructed: the copies of a recorded trace, as parts of the 30 ms that each call takes."""
    document = json.loads(gzip.decompress((cpu / "masked_fill.json.gz").read_bytes()))
    spans = [e["dur"] for e in document["traceEvents"] if e.get("name") == "forward"]
    durations = [part * span for part, span in zip(times, spans, strict=True)]
    (found,) = run(facts_from(stretched(document, durations))).findings
    assert found.severity == severity, part


def test_a_single_call_is_never_a_warning(cpu, facts_from):
    document = json.loads(gzip.decompress((cpu / "masked_fill.json.gz").read_bytes()))
    document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") != "user_annotation"]
    (found,) = run(facts_from(document)).findings
    assert (found.scope, found.severity) == ("whole", "note")


def test_no_part_of_a_scope_is_more_than_all_of_it(cpu, h200):
    paths = [*sorted(cpu.glob("*.json.gz")), *sorted(h200.glob("*/*.json.gz"))]
    shares = []
    for path in paths:
        for finding in run(measure(link(read(path)))).findings:
            shares += [float(one) for one in re.findall(r"\(([\d.]+)% of the scope", finding.summary)]
    assert len(shares) > 10
    assert max(shares) <= 100


def test_a_mean_is_set_against_a_mean(cpu, facts_from):
    """Constructed: one call of four is 50 times as long, nearly all of it in the copy."""
    document = json.loads(gzip.decompress((cpu / "masked_fill.json.gz").read_bytes()))
    longest = copies_of(document)[-1]
    start, extra = longest["ts"], 50 * longest["dur"]
    for event in document["traceEvents"]:
        if event.get("ph") == "X" and event["ts"] > start:
            event["ts"] += extra
        elif event.get("ph") == "X" and event["ts"] + event["dur"] > start:
            event["dur"] += extra
    (found,) = run(facts_from(document)).findings
    assert "on average" in found.summary
    (share,) = re.findall(r"\(([\d.]+)% of the scope", found.summary)
    assert 80 < float(share) <= 100
