"""Single calls of thirty models against what each ran on an H200, and a whole model recorded here."""

from collections import Counter

import pytest

from tracehunch import api
from tracehunch.guess import Guess
from tracehunch.judge.known import new_findings
from tracehunch.predict.program.known import known_of
from tracehunch.predict.program.one_call import guess_call

calls_in_models = pytest.importorskip("calls_in_models")
ROUGH = ("convolution", "_cudnn_rnn")  # cuDNN's choices are told by trees


@pytest.fixture(scope="module")
def rows():
    return list(calls_in_models.in_models())


def test_nearly_every_call_is_told_to_the_op_that_launches(rows):
    found = Counter()
    for one in rows:
        if not any(word in one.call.op for word in ROUGH):
            said = one.predicted
            found["untold" if said is None else "right" if said == one.counts else "wrong"] += one.times
    assert found["right"] > 0.99 * found.total()
    assert found["untold"] < 0.005 * found.total()


def test_times_of_calls_add_up_and_lie_in_their_ranges(rows, h200):
    said = ran = inside = 0.0
    for one in rows:
        time = guess_call(one.call, h200).activities.time
        if time is not None:
            said, ran = said + time.mid_us * one.times, ran + one.us * one.times
            inside += one.us * one.times * (time.low_us <= one.us <= time.high_us)
    assert said == pytest.approx(ran, rel=0.05)
    assert inside > 0.85 * ran


@pytest.mark.parametrize("name", ["llama_sdpa_prefill", "llama_eager_prefill"])
def test_a_recorded_model_against_its_trace(name, h200):
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    program_guess = pytest.importorskip("program_guess")
    made = program_guess.record_program(f"program_guess:{name}", search=program_guess.HERE, env=h200)
    guess = program_guess.guess_program(made, h200)
    seen = program_guess.ran(program_guess.MODELS / f"{name}.json.gz", "model_fwd")
    said = {row.op: (row.amounts.kernels, row.amounts.copies, row.amounts.memsets) for row in guess.by_op}
    assert said == {op: one[:3] for op, one in seen.ops.items()}
    assert guess.totals.amounts.gpu_time_us == pytest.approx(seen.us, rel=0.1)
    assert Counter({one.backend: one.calls for one in guess.sdpa}) == seen.backends
    assert not guess.cannot_tell
    warned = {one.id for one in guess.findings if one.severity != "note"}
    expected = {"overhead-bound"} if "sdpa" in name else {"unfused-attention", "hidden-copy"}
    assert warned - {"overhead-bound"} == expected - {"overhead-bound"}
    seen_there = api.look(program_guess.MODELS / f"{name}.json.gz").checked.findings
    foreseen = Guess((), known=known_of(guess, "model_fwd"))
    news = {one.id for one in new_findings(seen_there, foreseen) if one.severity != "note"}
    assert news <= {"overhead-bound"}  # a profiled host is slower
