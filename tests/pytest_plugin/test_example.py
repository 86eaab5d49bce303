from __future__ import annotations

import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "ci"
COPY = ("(query, key, value,", "(query, key.contiguous(), value,")
INTERLEAVED = [
    ("view(batch, length, 3, self.heads, -1)", "view(batch, length, self.heads, -1, 3)"),
    ("qkv.unbind(2)", "qkv.unbind(-1)"),
]


@pytest.fixture
def example(project):
    (project.path / "model.py").unlink()
    for name in ("model.py", "test_model_profile.py", "pytest.ini"):
        shutil.copy(EXAMPLE / name, project.path)
    (project.path / "tox.ini").unlink()
    return project


def _edit(example, *edits):
    path = example.path / "model.py"
    text = path.read_text()
    for before, after in edits:
        assert text.count(before) == 1
        text = text.replace(before, after)
    path.write_text(text)


def test_it_passes_as_it_is(example):
    result = example.runpytest_inprocess("-rs")
    result.assert_outcomes(passed=2, skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*it ran on no GPU*"])


def test_it_fails_when_attention_falls_back_to_math(example):
    _edit(example, *INTERLEAVED)
    result = example.runpytest_inprocess()
    result.assert_outcomes(failed=2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "E* assert 'math' in ('flash', 'efficient', 'cudnn')  (sdpa.backend in Decoder)",
            "E* sdpa-math-fallback: *",
            "*flash: last dimension*",
            "*FAILED *test_attention_is_fused*",
        ]
    )


def test_it_fails_when_the_model_gains_a_copy(example):
    _edit(example, COPY)
    result = example.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "E* assert 1 == 0  (calls of aten::copy_ in Attention)",
            "E* 1x  aten::contiguous > aten::clone > aten::copy_",
        ]
    )


def test_its_baseline_notices_a_copy_anywhere(example):
    chosen = ("-k", "fused")  # looks at the backend only
    example.runpytest_inprocess("--tracehunch-save", *chosen).assert_outcomes(passed=1, deselected=2)
    _edit(example, COPY)
    example.runpytest_inprocess(*chosen).assert_outcomes(passed=1, deselected=2)
    result = example.runpytest_inprocess("--tracehunch-compare", *chosen)
    result.assert_outcomes(failed=1, deselected=2)
    result.stdout.fnmatch_lines(
        [
            "leaf_ops in Decoder: guessed * (baseline), saw *",
            "baseline: .tracehunch/cpu/test_model_profile/test_attention_is_fused.toml; *",
        ]
    )
