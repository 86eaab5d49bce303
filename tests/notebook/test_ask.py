"""Questions and claims, without a kernel."""

from __future__ import annotations

import pytest

from tracehunch.errors import GuessError
from tracehunch.notebook.ask import ask, claims_of


def _said(words: str) -> list[tuple[str, str, object]]:
    return [(one.key, one.relation, one.expected) for one in claims_of("cell", words.split())]


@pytest.mark.parametrize(
    ("words", "claims"),
    [
        ("kernels=5 any_copies=0", [("kernels", "==", 5), ("any_copies", "==", 0)]),
        ("kernels 5, copies <= 1", [("kernels", "==", 5), ("copies", "<=", 1)]),
        ("kernels=5 gpu_time < 2ms", [("kernels", "==", 5), ("gpu_time", "<", 2000)]),
        ("leaf_ops<=7 gpu_time<2ms", [("leaf_ops", "<=", 7), ("gpu_time", "<", 2000)]),
        ("sdpa_backend=flash", [("sdpa.backend", "==", "flash")]),
        ("dominant=softmax,bmm kernels=5", [("dominant", "leads", ("softmax", "bmm")), ("kernels", "==", 5)]),
        ("", []),
    ],
)
def test_claims_as_they_are_written_behind_the_magic(
    words: str, claims: list[tuple[str, str, object]]
) -> None:
    assert _said(words) == claims


@pytest.mark.parametrize("words", ["kernel=5", "kernels", "kernels=5 kernels=6", "kernels=many"])
def test_what_is_no_claim_is_an_error(words: str) -> None:
    with pytest.raises(GuessError):
        claims_of("cell", words.split())


def _asked(device: str, *answers: str) -> tuple[list[str], list[tuple[str, object]], list[str]]:
    prompts: list[str] = []
    told: list[str] = []
    left = iter(answers)

    def answer_to(prompt: str) -> str:
        prompts.append(prompt)
        try:
            return next(left)
        except StopIteration:
            raise EOFError from None

    claims = ask("cell", device, answer_to, told.append)
    return prompts, [(one.key, one.expected) for one in claims], told


def test_on_a_gpu_kernels_and_copies_are_asked_for() -> None:
    prompts, claims, _ = _asked("cuda", "5", "1", "flash, math", "softmax", "memsets 0, gpu_time < 2ms")
    assert len(prompts) == 5
    assert claims == [
        ("kernels", 5), ("copies", 1), ("sdpa.backend", ("flash", "math")), ("dominant", ("softmax",)),
        ("memsets", 0), ("gpu_time", 2000),
    ]  # fmt: skip


def test_on_a_cpu_leaf_ops_are_asked_for() -> None:
    prompts, claims, _ = _asked("cpu", "<= 5", "", "", "")
    assert "leaf ops" in prompts[0]
    assert claims == [("leaf_ops", 5)]


def test_the_end_of_the_input_ends_the_questions() -> None:
    prompts, claims, _ = _asked("cpu", "5")
    assert (len(prompts), claims) == (2, [("leaf_ops", 5)])


def test_a_claim_twice_is_asked_about_again() -> None:
    _, claims, told = _asked("cpu", "5", "", "", "leaf_ops 6", "cpu_time < 2ms")
    assert claims == [("leaf_ops", 5), ("cpu_time", 2000)]
    assert "twice" in told[0]


def test_what_is_no_backend_is_refused() -> None:
    _, claims, told = _asked("cpu", "", "xyz", "none", "", "")
    assert claims == [("sdpa.backend", "none")]
    assert "there is no SDPA backend 'xyz'" in told[0]
