import threading

import pytest

torch = pytest.importorskip("torch")

import tracehunch  # noqa: E402  # after importorskip
from tracehunch.errors import CaptureError, GuessError  # noqa: E402  # torch is needed for what follows


def made(*arguments, **options):
    """Make a profiled function of which each call has one op more, which its caller sees in the result."""
    calls = []

    @tracehunch.profiled(*arguments, cuda=False, **options)
    def work(base=0):
        calls.append(1)
        for _ in calls:
            torch.ones(4).exp()
        return base + len(calls)

    return work


def ops_of(function):
    return function.profile.look.scopes["aten::exp"].calls


def test_the_first_call_is_recorded_until_the_second_takes_its_place():
    work = made("work", {"leaf_ops": 6})
    assert work.profile.trace_path is None
    assert "not called yet" in work.profile.reason
    assert work(base=10) == 11
    assert ops_of(work) == 1
    assert (work.profile.detached, work.profile.reason) == (False, "only the first call was recorded")
    assert work() == 2
    assert ops_of(work) == 2
    assert (work.profile.detached, work.profile.reason) == (True, "")
    assert work() == 3
    assert ops_of(work) == 2
    assert len(work.profile.verdict.held) == 1
    assert work.profile.facts.calls == 1


def test_several_calls_are_calls_of_one_scope():
    work = made(calls=3, skip=1)
    for _ in range(6):
        work()
        torch.zeros(3).cos()
    assert work.profile.facts.calls == 3
    assert ops_of(work) == 2 + 3 + 4
    assert work.profile.facts["leaf_ops"] == 3 * 3  # what runs between the calls is not in the scope
    assert work.profile.look.scopes["aten::cos"].calls == 2


def test_stop_ends_early_and_writes_what_there_is():
    work = made(calls=5, skip=0)
    work()
    work()
    assert work.profile.trace_path is None
    work.profile.stop()
    assert work.profile.facts.calls == 2
    assert work.profile.reason == "ended after 2 of 5 steps"
    work()
    assert work.profile.facts.calls == 2


def test_methods_are_methods_and_names_stay():
    class Model:
        @tracehunch.profiled
        def forward(self, x):
            """Docs."""
            return x.exp(), self

    model = Model()
    for _ in range(2):
        result, bound = model.forward(torch.ones(2))
        assert bound is model
        assert result.shape == (2,)
    assert Model.forward.__doc__ == "Docs."
    assert Model.forward.profile.scope == "Model.forward"
    assert Model.forward.profile.facts["leaf_ops"] == 1


def test_what_the_function_raises_is_passed_on_and_its_call_counts():
    @tracehunch.profiled(cuda=False)
    def fails():
        torch.ones(1)
        raise LookupError("mine")

    for _ in range(3):
        with pytest.raises(LookupError, match="mine"):
            fails()
    assert fails.profile.detached
    assert fails.profile.facts["leaf_ops"] == 2


def test_a_call_within_a_call_is_part_of_it():
    @tracehunch.profiled("outer", cuda=False)
    def descend(depth):
        torch.ones(1).exp()
        return descend(depth - 1) if depth else depth

    for _ in range(2):
        assert descend(3) == 0
    assert descend.profile.facts.calls == 1
    assert ops_of(descend) == 4


def test_a_call_in_another_thread_runs_unrecorded():
    work = made(calls=2, skip=0)
    work()
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    work()
    assert work.profile.facts.calls == 2
    assert ops_of(work) == 1 + 3


def test_where_another_profiler_runs_the_function_does_too():
    work = made()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        assert work() == 1
    assert "already running" in work.profile.reason
    with pytest.raises(CaptureError, match="already running"):
        _ = work.profile.verdict


def test_a_bad_guess_and_what_is_no_plain_function_are_refused_where_they_stand():
    with pytest.raises(GuessError, match="did you mean kernels"):
        made("work", {"kernel": 1})
    for kind, function in (("coroutine", coroutine), ("generator", generator), ("class", Exception)):
        with pytest.raises(CaptureError, match=f"it is a {kind}"):
            tracehunch.profiled(function)


async def coroutine():
    pass


def generator():
    yield


@pytest.mark.parametrize("wrapper", [classmethod, property])
def test_what_cannot_be_called_itself_is_refused(wrapper):
    with pytest.raises(CaptureError, match="next to the function"):
        tracehunch.profiled(wrapper(lambda cls: cls))


def test_class_methods_may_be_profiled_below_their_decorator():
    class Model:
        @classmethod
        @tracehunch.profiled(cuda=False)
        def made(cls):
            return torch.ones(3).relu()

    for _ in range(2):
        Model.made()
    assert Model.made.profile.facts.calls == 1


@pytest.mark.parametrize("options", [{"calls": 0}, {"calls": "2"}, {"skip": -1}])
def test_numbers_of_calls_that_make_no_sense_are_refused_where_they_stand(options):
    with pytest.raises(CaptureError, match="cannot record"):
        tracehunch.profiled(**options)(len)
