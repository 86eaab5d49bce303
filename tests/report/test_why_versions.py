"""What ``guess --why`` says of versions that a trace leaves open."""

from pathlib import Path

from tracehunch.predict.sdpa.dispatch import across_versions
from tracehunch.predict.traced.explain import explain
from tracehunch.report.why_lines import lines_of
from tracehunch.trace import read
from tracehunch.tree import link

GQA = Path(__file__).parents[1] / "data" / "h200" / "ops" / "gqa_auto.json.gz"


def test_a_backend_that_other_versions_refuse_says_so() -> None:
    (group,) = explain(link(read(GQA))).groups
    told = dict(lines_of(group))
    assert "under torch 2.9 to 2.13 refuses" in told["efficient"]
    assert "under torch" not in told["flash"]


def test_other_versions_are_those_for_the_same_cuda() -> None:
    """2.10 for CUDA 13 ships a cuDNN that is asked first, the default wheel for CUDA 12.8 does not."""
    (group,) = explain(link(read(GQA))).groups
    case = next(one for one in group.cases if one.env.torch == (2, 11))
    assert dict(across_versions(case.call, case.env, same_cuda=True))["2.10"] == "cudnn"
    assert dict(across_versions(case.call, case.env))["2.10"] == "flash"
