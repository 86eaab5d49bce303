"""PyTorch's own answers to 3,000 random calls on an H200 (torch 2.11, cuDNN 9.19)."""

import json

import pytest

from tracehunch.predict.environment import environment
from tracehunch.predict.sdpa import predict_rows

ANSWERS = ("chosen", "flash", "efficient", "cudnn")


@pytest.fixture(scope="module")
def predicted(grid):
    env = environment("h200", torch="2.11", cudnn=91900)
    return [json.loads(line) for line in predict_rows(grid, env)][1:]


@pytest.mark.parametrize("answer", ANSWERS)
def test_every_answer_agrees(predicted, answer):
    assert len(predicted) == 3000
    wrong = [row for row in predicted if row["predicted"][answer] != row[answer]]
    assert wrong == []


def test_errors_of_every_executed_row_agree(predicted):
    executed = [row for row in predicted if "run_error" in row or "kernels" in row]
    assert len(executed) == 237
    wrong = [row for row in executed if row["predicted"]["raises"] != row.get("run_error")]
    assert wrong == []


def test_every_refusal_has_its_reasons(predicted):
    for row in predicted:
        for backend in ANSWERS[1:]:
            assert (backend in row["predicted"]["reasons"]) == (not row[backend])


def test_each_line_is_answered_and_so_is_the_header(grid):
    assert len(list(predict_rows(grid, environment("h200", torch="2.11", cudnn=91900)))) == 3001
