from dataclasses import replace

import pytest

from tracehunch.attention import VARIANTS
from tracehunch.attention.guesses import guess_of
from tracehunch.attention.outcome import Device, Outcome
from tracehunch.attention.questions import Question, claim, own_guess, questions
from tracehunch.attention.workload import Workload
from tracehunch.errors import GuessError

WORKLOAD = Workload(batch=8, heads=16, seq=1024, head_dim=64, kv_heads=16)
GPU = Device("cuda", "NVIDIA H200", "2.11.0+cu130")
NAIVE = VARIANTS[0]


class Timed(Outcome):
    time_us = 1063.5


def outcome(device=GPU, workload=WORKLOAD):
    return Timed(NAIVE, "ran", device, workload, guess_of(NAIVE, workload, device))


def keys(device, last=None):
    return [question.key for question in questions(WORKLOAD, device, last)]


def test_a_gpu_is_asked_about_kernels_and_a_cpu_about_leaf_ops():
    assert keys(GPU) == ["kernels", "copies", "sdpa.backend", "dominant"]
    assert keys(Device("cpu", "CPU")) == ["leaf_ops", "sdpa.backend", "dominant"]


def test_faster_or_slower_is_asked_only_where_the_last_did_the_same_work_on_the_same_device():
    assert keys(GPU, outcome())[-1] == "gpu_time"
    assert len(keys(GPU, outcome(device=replace(GPU, name="NVIDIA A100")))) == 4
    assert len(keys(GPU, outcome(workload=replace(WORKLOAD, seq=2048)))) == 4


@pytest.mark.parametrize(
    ("key", "answer", "relation", "expected"),
    [
        ("kernels", "5\n", "==", 5),
        ("kernels", "<= 20", "<=", 20),
        ("copies", "0..1", "in", (0, 1)),
        ("sdpa.backend", " Flash \n", "==", "flash"),
        ("dominant", "softmax", "leads", ("softmax",)),
        ("dominant", "softmax, matmul", "leads", ("softmax", "matmul")),
    ],
)
def test_answers_become_claims_of_the_user(key, answer, relation, expected):
    made = claim(Question("?", key), answer, NAIVE)
    assert (made.key, made.relation, made.expected) == (key, relation, expected)
    assert (made.who, made.scope) == ("user", "attn_fwd")


@pytest.mark.parametrize(
    ("answer", "relation"), [("faster", "<"), ("s", None), ("slower", ">"), ("f\n", "<"), ("same", "~")]
)
def test_faster_and_slower_are_claims_about_the_time_of_the_last(answer, relation):
    question = Question("faster?", "gpu_time", 1063.5)
    if relation is None:
        with pytest.raises(GuessError, match="faster, slower or same"):
            claim(question, answer, NAIVE)
    else:
        made = claim(question, answer, NAIVE)
        assert (made.relation, made.expected, made.unit) == (relation, 1063.5, "us")


@pytest.mark.parametrize(
    ("key", "answer"),
    [
        ("kernels", "five"),
        ("kernels", "-1"),
        ("copies", "1.5"),
        ("kernels", "3us"),
        ("sdpa.backend", "7"),
        ("sdpa.backend", "flahs"),
        ("dominant", "foo"),
        ("dominant", "matmul, sofmax"),
    ],
)
def test_nonsense_is_told(key, answer):
    with pytest.raises(GuessError):
        claim(Question("?", key), answer, NAIVE)


def test_own_claims_are_kept_apart_from_the_textbook():
    own = claim(Question("?", "kernels"), "6", NAIVE)
    both = guess_of(NAIVE, WORKLOAD, GPU, [own])
    assert own_guess(both).claims == (own,)
    assert own_guess(both).seal != both.seal


@pytest.mark.parametrize(
    ("answer", "meant"),
    [
        ("mask", "masked_fill"),
        ("sdpa", "scaled_dot_product_attention"),
        ("sofmax", "softmax"),
        ("gemm", "matmul"),
    ],
)
def test_an_op_that_is_none_is_told_with_what_was_meant(answer, meant):
    with pytest.raises(GuessError, match=f"did you mean {meant}"):
        claim(Question("?", "dominant"), answer, NAIVE)


def test_ops_are_taken_as_people_and_as_pytorch_say_them():
    for answer in ("softmax", "_softmax", "aten::_softmax", "masked_fill_", "aten::some_new_op"):
        assert claim(Question("?", "dominant"), answer, NAIVE).expected == (answer,)
