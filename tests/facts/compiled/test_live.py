"""Compiled here and now: what this version of PyTorch records, claims hold or break by."""

import shutil

import pytest

from tracehunch.guess import Guess
from tracehunch.guess.claims import claims_from_mapping
from tracehunch.judge import examine
from tracehunch.trace import read

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="Inductor compiles with g++")


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """Four calls each of a function that breaks after two ops and of one that is given other sizes."""
    from torch._inductor import config  # noqa: PLC0415  # loads the compiler

    def broken(x):
        y = torch.nn.functional.gelu(x) * 2
        print(end="")  # noqa: T201  # what breaks the graph
        return y.sin() + 1

    def plain(x):
        return torch.nn.functional.silu(x) * x

    torch._dynamo.reset()  # the documented way to forget compiled code
    path = tmp_path_factory.mktemp("live") / "trace.json"
    with config.patch({"cpp.enable_kernel_profile": True, "compile_threads": 1}), torch.no_grad():
        compiled = {f.__name__: torch.compile(f, dynamic=False) for f in (broken, plain)}
        for f in compiled.values():
            f(torch.ones(8, 16))
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
            for name, f in compiled.items():
                for n in (8, 8, 8, 8) if name == "broken" else (8, 8, 12, 12):
                    x = torch.ones(n, 16)
                    with torch.profiler.record_function(name):
                        f(x)
    profiler.export_chrome_trace(str(path))
    return read(path)


def outcomes(trace, scope, claims):
    verdict = examine(trace, (Guess(claims_from_mapping(scope, claims)),)).verdict
    broken = {one.claim.key: one.seen for one in verdict.surprises}
    assert not verdict.cannot_tell
    return {one.claim.key for one in verdict.held}, broken, verdict


def test_a_print_in_between_breaks_the_graph(trace):
    held, broken, _ = outcomes(
        trace, "broken", {"compiled.graph_breaks": 0, "fused": ["gelu", "mul"], "compiled": 2}
    )
    assert held == {"fused", "compiled"}
    assert broken == {"compiled.graph_breaks": 1}
    _, broken, _ = outcomes(trace, "broken", {"fused": ["gelu", "sin"]})
    assert ["cpp_fused_gelu_mul" in broken["fused"][0], "cpp_fused_add_sin" in broken["fused"][1]] == [
        True,
        True,
    ]


def test_another_size_compiles_again_in_the_third_call(trace):
    claims = {
        "compiled.graph_breaks": 0, "compiled.kernels": 1, "fused": ["silu", "mul"],
        "compiled.last_recompile": "<= 2", "compiled.last_compile": 3,
    }  # fmt: skip
    held, broken, verdict = outcomes(trace, "plain", claims)
    assert held == set(claims) - {"compiled.last_recompile"}
    assert broken == {"compiled.last_recompile": 3}
    assert verdict.surprises[0].explained_by == ("recompile",)
