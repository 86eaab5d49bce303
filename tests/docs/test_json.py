"""docs/json.md is complete: no document has a field that it lacks, and it has none that no document has."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

from tracehunch.facts.vocabulary import KEYS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PAGE = ROOT / "docs" / "json.md"
H200 = "tests/data/h200"
OVER_TIME = "tests/data/over_time"

RARE = {
    ("BackendAnswer", "unknown"),
    ("Ceilings", "copy_bandwidth"),  # measured on a GPU
    ("Ceilings", "matmul_flops"),
    ("ExpertGuess", "raises"),  # this and the next: of a device that refuses a variant
    ("Variant", "misjudged"),
    ("Recompile", "call"),  # a program whose second call compiles again
    ("Recompile", "function"),
    ("Recompile", "line"),
    ("Recompile", "reason"),
    ("Region", "cuda_graph"),
    ("Region", "unknown"),
    ("OddFact", "key"),  # this and the others of ranks: met in tests/report/test_ranks_json.py
    ("OddFact", "median"),
    ("OddFact", "rank"),
    ("OddFact", "ranks"),
    ("OddFact", "scope"),
    ("OddFact", "seen"),
    ("RankClock", "drift_us_per_s"),
    ("Series", "ceilings"),
    ("WhyGroup", "raises"),
    ("WhyGroup", "unknown"),
}
"""Documented, and in none of the documents below."""

HUNCH = """
[[guess]]
scope = "attn_fwd"
kernels = 5
copies = 0
flops = "> 1"
"""

PROGRAM = """
import torch
import torch.nn.functional as F

def eager():
    q = torch.randn(4, 8, 512, 64, dtype=torch.bfloat16)
    mask = torch.ones(512, 512, dtype=torch.bool)

    def run(q):
        y = F.scaled_dot_product_attention(q, q, q, attn_mask=mask)
        return y.relu()

    return run, (q,)

def compiled():
    x, w = torch.randn(4, 512, 64, dtype=torch.bfloat16), torch.randn(64, 64, dtype=torch.bfloat16)

    @torch.compile
    def tail(x):
        y = F.gelu(x @ w)
        print("", end="")
        return y.sin() + 1

    return tail, (x,)
"""

TURNS = [
    {
        "ph": "X",
        "cat": cat,
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": 5000 * step,
        "dur": 1000 + step % 3 + 2000 * (step % 4 == 3),
    }
    for step in range(40)
    for cat, name in [("user_annotation", f"ProfilerStep#{step}"), ("cpu_op", "aten::mm")]
]
"""Every fourth step takes three times as long."""

LOST = [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 100},
    {
        "ph": "X",
        "cat": "cuda_runtime",
        "name": "cudaLaunchKernel",
        "pid": 1,
        "tid": 1,
        "ts": 0,
        "dur": 10,
        "args": {"correlation": 1},
    },
    *(
        {
            "ph": "X",
            "cat": "kernel",
            "name": "kernel",
            "pid": 0,
            "tid": 7,
            "ts": at,
            "dur": 20,
            "args": {"device": 0, "stream": 7, "correlation": 0},
        }
        for at in (15, 40, 65)
    ),
]
"""Kernels whose launches are not in the file."""

ROWS = """
{"B": 2, "H": 8, "S": 128, "D": 64, "dtype": "bfloat16", "Hk": 2, "gqa": true, "backend": "auto"}
{"B": 2, "H": 8, "S": 128, "D": 64, "dtype": "bfloat16", "backend": "naive"}
"""

QUICK = [
    ("Look", ["look", f"{H200}/seeds/naive.json.gz"]),
    ("Look", ["look", f"{H200}/models/llama_sdpa_train.json.gz"]),
    ("Look", ["look", f"{H200}/ranks/ddp/rank0.json.gz"]),
    ("Look", ["look", "tests/data/cpu/mha.json.gz"]),
    ("Table", ["look", "--table", f"{H200}/seeds/naive.json.gz"]),
    ("Look", ["look", "--critical-path", f"{H200}/models/llama_sdpa_train.json.gz"]),
    ("Look", ["look", "--critical-path", f"{H200}/faults/sync_item.json.gz"]),
    ("Look", ["look", "--critical-path", "lost.json"]),
    ("OverTime", ["look", "--over-time", f"{OVER_TIME}/backend", "damaged.json"]),
    ("OverTime", ["look", "--over-time", f"{OVER_TIME}/leak"]),
    ("OverTime", ["look", "--over-time", "turns.json"]),
    ("OverTime", ["look", "--over-time", f"{H200}/ranks/tp"]),
    ("OverTime", ["look", "--over-time", f"{H200}/models"]),
    ("Look", ["check", "hunch.toml", f"{H200}/seeds/naive.json.gz"]),
    (
        "Diff",
        ["diff", f"{H200}/models/llama_sdpa_prefill.json.gz", f"{H200}/models/llama_sdpa_padded.json.gz"],
    ),
    ("Diff", ["diff", f"{H200}/seeds/naive.json.gz", f"{H200}/seeds/sdpa_flash.json.gz"]),
    ("Ranks", ["ranks", f"{H200}/ranks/tp", "--workers", "1"]),
    ("Ranks", ["ranks", f"{H200}/ranks/ddp", "hunch.toml", "--workers", "1"]),
    ("Attention", ["attention", "--device", "recorded"]),
    ("Prediction", ["guess", "attention", "--gpu", "h200", "--torch", "2.11"]),
    ("Prediction", ["guess", "attention", "--gpu", "b200", "--torch", "2.13", "--dtype", "float32"]),
    ("Why", ["guess", "--why", f"{H200}/ops/gqa_math.json.gz", "--torch", "2.11"]),
    ("Why", ["guess", "--why", f"{H200}/ops/boolmask_auto.json.gz"]),
    ("Why", ["guess", "--why", "tests/data/h200_calls/sdpa_calls.json.gz"]),
]

NEEDS_TORCH = [
    (
        "Attention",
        ["attention", "--device", "cpu", "--heads", "1", "--seq", "32", "--steps", "2", "--save-traces", "t"],
    ),
    ("Program", ["guess", "program.py:eager", "--gpu", "h200", "--torch", "2.13"]),
    ("Program", ["guess", "program.py:compiled", "--gpu", "h200", "--torch", "2.13"]),
    ("Program", ["guess", "program.py:compiled", "--compile", "--gpu", "h200", "--torch", "2.13"]),
]


def load_schema():
    spec = importlib.util.spec_from_file_location("docs_schema", HERE / "schema.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.read(PAGE.read_text(encoding="utf-8"))


@pytest.fixture
def schema():
    return load_schema()


@pytest.mark.xdist_group("docs-json")
def test_every_field_is_documented_and_every_documented_one_is_met(schema, tracehunch, monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # a variable that traces hold
    (tracehunch.folder / "hunch.toml").write_text(HUNCH)
    (tracehunch.folder / "program.py").write_text(PROGRAM)
    (tracehunch.folder / "damaged.json").write_text('{"traceEvents": 3}')
    for name, events in [("turns", TURNS), ("lost", LOST)]:
        (tracehunch.folder / f"{name}.json").write_text(json.dumps({"traceEvents": events}))
    for kind, arguments in [*QUICK, *NEEDS_TORCH]:
        document = json.loads(tracehunch(*arguments, "--format", "json").stdout)
        errors = sorted(set(schema.errors(document, kind)))
        assert not errors, (arguments, errors)
    (tracehunch.folder / "rows.jsonl").write_text(ROWS)
    for kind, verb, gpu in [
        ("RowChoice", "sdpa", "h200"),
        ("RowForecast", "attention", "h200"),
        ("RowForecast", "attention", "b200"),
    ]:
        rows = tracehunch("guess", verb, "--rows", "rows.jsonl", "--gpu", gpu, "--torch", "2.13").stdout
        for row in rows.splitlines():
            assert not list(schema.errors(json.loads(row)["predicted"], kind))
    sometimes = {("Variant", "rank_undecided"), ("RankFinding", "rank")}  # as times happen to fall
    assert schema.unmet() - sometimes == RARE


def test_a_field_too_many_one_too_few_and_a_wrong_type_are_errors(schema):
    finding = {
        "id": "a",
        "scope": "b",
        "severity": "loud",
        "confidence": "low",
        "time_at_stake_us": True,
        "odd": 1,
    }
    errors = "\n".join(schema.errors(finding, "Finding"))
    for said in ("Finding has no odd", "Finding lacks fix", "'loud' is none of", "True is no number"):
        assert said in errors


def test_every_type_that_the_page_names_is_on_it(schema):
    for name, fields in schema.objects.items():
        for kind, _ in fields.values():
            for word in re.findall(r"\b[A-Z]\w+\b", re.sub(r'"[^"]*"', "", kind)):
                assert word in schema.objects, (name, kind)


def test_facts_of_a_report_have_the_keys_of_the_vocabulary(tracehunch):
    report = json.loads(
        tracehunch("look", f"{H200}/models/llama_sdpa_train.json.gz", "--format", "json").stdout
    )
    known = {key.json_name for key in KEYS.values()}
    for scope in report["scopes"]:
        for part in ("facts", "own_thread", "spread"):
            assert not scope[part].keys() - known
