import json
from dataclasses import replace

import pytest

from tracehunch.attention import VARIANTS
from tracehunch.attention.expert import cudnn_number, expert_of
from tracehunch.attention.guesses import guess_of
from tracehunch.attention.outcome import Device, Outcome, Series
from tracehunch.attention.recorded import recording
from tracehunch.attention.workload import Workload
from tracehunch.judge import examine
from tracehunch.report import attention_json, attention_markdown, attention_terminal
from tracehunch.report.attention_headline import headline
from tracehunch.report.attention_surprises import surprise_text, surprises, why_text
from tracehunch.trace import read

BY_NAME = {variant.name: variant for variant in VARIANTS}
WORKLOAD = Workload(8, 16, 1024, 64, 16)
GPU = Device("cuda", "NVIDIA H200", "2.11.0+cu130", cudnn=91900)


def claims(name, workload=WORKLOAD, device=GPU):
    return {one.key: one for one in expert_of(BY_NAME[name], workload, device).guess.claims}


def series(name, *, wrong=None):
    """The recorded variant, its expert guess with some claims changed (key -> expected)."""
    here, variant = recording(), BY_NAME[name]
    guess = guess_of(variant, here.workload, here.device)
    expert = expert_of(variant, here.workload, here.device)
    changed = tuple(
        replace(one, expected=(wrong or {}).get(one.key, one.expected)) for one in expert.guess.claims
    )
    expert = replace(expert, guess=replace(expert.guess, claims=changed))
    look = examine(read(here.traces[name]), (guess, expert.guess))
    return Series((Outcome(variant, "recorded", here.device, here.workload, guess, look, expert=expert),))


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda one: one.name)
def test_the_expert_guess_holds_on_every_recorded_trace(variant):
    one = series(variant.name).outcomes[0]
    keys = {claim.key for claim in one.expert.guess.claims}
    assert {"kernels", "copies", "memsets", "sdpa.backend", "gpu_time"} <= keys
    assert {claim.who for claim in one.expert.guess.claims} == {"expert"}
    assert {told.claim.key for told in one.look.verdict.held if told.claim.who == "expert"} == keys
    assert not one.look.verdict.cannot_tell


def test_what_leads_is_guessed_where_it_is_clear():
    assert claims("naive")["dominant"].expected == ("masked_fill",)
    assert "dominant" not in claims("naive_inplace")  # mask and softmax take about as long
    assert "dominant" not in claims("sdpa_flash")


def test_times_are_claimed_with_less_confidence_than_counts():
    flash = claims("sdpa_flash")
    assert (flash["kernels"].confidence, flash["gpu_time"].confidence) == ("high", "medium")


def test_the_seal_depends_on_the_version_of_cudnn():
    seals = {
        expert_of(BY_NAME["sdpa_auto"], WORKLOAD, replace(GPU, cudnn=n)).guess.seal for n in (91900, 91002)
    }
    assert len(seals) == 2


def test_real_strides_count():
    torch = pytest.importorskip("torch")
    inputs = pytest.importorskip("tracehunch.attention.inputs").make_inputs(Workload(1, 2, 64, 64, 2), "cpu")
    strided = replace(inputs, q=torch.randn(1, 2, 64, 64).transpose(-1, -2).bfloat16())
    workload = Workload(1, 2, 64, 64, 2)
    assert expert_of(BY_NAME["sdpa_flash"], workload, GPU, inputs).raises is None
    assert expert_of(BY_NAME["sdpa_flash"], workload, GPU, strided).raises is not None


@pytest.mark.parametrize(
    ("device", "said"),
    [
        (Device("cpu", "CPU", "2.13.0"), "not the leaf ops of a CPU"),
        (replace(GPU, name="NVIDIA Q1000"), "NVIDIA Q1000 is not among the GPUs"),
        (Device("cuda", "AMD Instinct MI300X", "2.11.0+rocm7.1"), "MI300X"),
        (replace(GPU, cudnn=None), "cuDNN"),
        (replace(GPU, torch="2.99.0"), "2.99"),
    ],
)
def test_what_the_expert_does_not_know_is_said(device, said):
    expert = expert_of(BY_NAME["sdpa_auto"], WORKLOAD, device)
    assert said in expert.untold
    assert not expert.guesses
    assert not expert.guess.claims


def test_a_call_that_will_raise_is_foretold():
    expert = expert_of(BY_NAME["sdpa_flash"], replace(WORKLOAD, dtype="float32"), GPU)
    assert "No available kernel" in expert.raises
    assert expert.guesses
    assert not expert.guess.claims


def test_cudnn_versions():
    assert [cudnn_number(text) for text in ("9.19", "9.10.2", "91900", "")] == [91900, 91002, 91900, None]


# what the report makes of it


def test_a_broken_textbook_guess_that_the_expert_shares_not_is_explained():
    (first, *_) = surprises(series("sdpa_math"))
    assert first.surprise.explained_by
    assert surprise_text(first).startswith("guessed 1 kernel, saw 20 kernels, as the expert guessed")
    assert headline(series("sdpa_math")).endswith("all explained. Every expert guess held.")


def test_a_broken_expert_guess_is_unexplained_and_comes_first():
    wrong = series("naive", wrong={"memsets": 0})
    first, *rest = surprises(wrong)
    assert (first.surprise.claim.key, first.who, first.surprise.explained_by) == ("memsets", ("expert",), ())
    assert first.surprise.severity == "warning"
    assert surprise_text(first).startswith("the expert guessed 0 memsets, saw 1 memset")
    assert "unexplained" in why_text(first)
    assert [one.surprise.claim.key for one in rest] == ["copies"]  # though it has time at stake
    assert "1 expert guess did not hold, and nothing explains that." in headline(wrong)
    text = attention_terminal.render(wrong)
    assert "Surprises  what the expert did not expect, then most time at stake first" in text
    assert "what the expert did not expect" in attention_markdown.render(wrong)


def test_where_both_are_wrong_alike_it_is_one_surprise_without_an_explanation():
    both = series("naive", wrong={"copies": 0})
    (only,) = surprises(both)
    assert only.who == ("textbook", "expert")
    assert not only.surprise.explained_by
    assert "the textbook and the expert guessed 0 copies, saw 1 copy" in surprise_text(only)


def test_a_wrong_time_does_not_shout():
    late = series("naive", wrong={"gpu_time": (1.0, 2.0), "dominant": ("mul",)})
    told = surprises(late)
    assert {one.surprise.severity for one in told} == {"note"}
    assert not any(one.misses_expert for one in told)
    assert headline(late).endswith("explained. The expert guess held, but for 2 guesses of time.")
    assert "what the expert did not expect" not in attention_terminal.render(late)


def test_that_there_is_no_expert_guess_is_said_once():
    one = series("naive").outcomes[0]
    other = replace(one, expert=expert_of(BY_NAME["naive"], WORKLOAD, Device("cpu", "CPU")))
    text = " ".join(attention_terminal.render(Series((other, other))).split())
    assert text.count("No expert guess: it knows kernels on GPUs") == 1
    assert "guessed → seen" in text
    assert "xpert guess held" not in text


def test_both_guesses_are_in_the_json():
    (variant,) = json.loads(attention_json.render(series("sdpa_math")))["attention"]["variants"]
    assert {claim["who"] for claim in variant["guess"]["claims"]} == {"textbook"}
    assert {claim["who"] for claim in variant["expert"]["claims"]} == {"expert"}
    assert variant["expert"]["seal"] != variant["guess"]["seal"]
    assert variant["expert"]["context"]["cudnn"] == "91900"
