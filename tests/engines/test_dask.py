"""The Dask engine on real clusters: the same answer as here, whatever becomes of a worker."""

import logging
import sys
import threading
from types import SimpleNamespace

import pytest
from tests.compare.ranks.made import Straggler, make

from tracehunch.compare.ranks import compare
from tracehunch.engines import cluster as connecting
from tracehunch.engines import dask as engine
from tracehunch.engines import run
from tracehunch.engines.task import examined
from tracehunch.errors import TracehunchError
from tracehunch.report import ranks_json
from tracehunch.trace.discover import discover

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.xdist_group("dask")


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """Let a busy machine take its time to answer."""
    for module in (engine, connecting):
        monkeypatch.setattr(module, "ANSWER_S", 60)


def whats(results):
    return [f"{one.source}: {one.what}" for one in results]


def lean(_rank, document):
    """Leave the collectives and the launches: 256 ranks are many."""
    document["traceEvents"] = [
        event for event in document["traceEvents"]
        if event["ph"] == "M" or event.get("cat") == "cuda_runtime"
        or event["name"].startswith(("nccl", "record_param_comms"))
    ]  # fmt: skip


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """256 ranks made from the recorded two-GPU job."""
    folder = tmp_path_factory.mktemp("job")
    make(folder, 256, straggler=Straggler(rank=77, extra_us=2_000), change=lean)
    found = discover([folder]).sources
    assert len(found) == 256
    return found


@pytest.fixture(scope="module")
def cluster():
    """A scheduler and a worker in threads of this process."""
    with distributed.LocalCluster(
        n_workers=1,
        processes=False,
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
        protocol="tcp://",
        host="127.0.0.1",
    ) as started:
        yield started


def report(results):
    return ranks_json.render(compare(results))


def test_256_ranks_give_the_same_bytes_here_and_there_though_a_worker_is_killed_in_the_middle(files, tasks):
    done = []
    there = run(files, engine="dask", workers=2, work=tasks.dies_once, progress=done.append)
    assert (len(done), done[-1]) == (256, 1)
    markers = discover([files[0].place.replace("rank0.json.gz", "*.seen")]).sources
    assert len(markers) == 1  # it was killed
    here = run(files, workers=2)
    assert report(there) == report(here)
    assert [one.rank for one in here] == list(range(256))
    some = files[:8]
    assert report(run(some, workers=1)) == report(here[:8])


def test_a_scheduler_that_is_there_is_used_and_left_running(files, cluster):
    some = files[:3]
    there = run(some, engine="dask", scheduler=cluster.scheduler_address)
    assert report(there) == report([examined(one) for one in some])
    assert cluster.status.name == "running"


def test_what_goes_wrong_with_a_file_is_said_as_here(cluster, tasks, sources):
    address = cluster.scheduler_address
    results = run(sources("a"), engine="dask", scheduler=address, work=tasks.short_of_memory)
    assert whats(results) == ["a: needs more memory than there is"]
    [one] = run(sources("a"), engine="dask", scheduler=address, work=tasks.broken)
    assert (one.what, one.why) == (
        "could not be examined",
        "on its worker: ZeroDivisionError: broken",
    )


def test_a_cluster_without_workers_is_one_error(sources, monkeypatch):
    monkeypatch.setattr(engine, "WORKERS_S", 0.1)
    with (
        distributed.LocalCluster(
            n_workers=0, processes=False, dashboard_address="127.0.0.1:0", protocol="tcp://", host="127.0.0.1"
        ) as empty,
        pytest.raises(TracehunchError, match="has no workers"),
    ):
        run(sources("a"), engine="dask", scheduler=empty.scheduler_address)


def test_without_the_package_the_error_says_what_to_install(sources, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(TracehunchError, match=r"pip install 'tracehunch\[dask\]'"):
        run(sources("a"), engine="dask")


def test_a_result_that_came_counts_though_its_worker_is_lost_by_now(tasks, sources, monkeypatch):
    [source] = sources("a")
    one = tasks.named(source)
    future = SimpleNamespace(key="k", status="lost")
    client = SimpleNamespace(submit=lambda *_, **__: Hashed(future), loop=None)
    monkeypatch.setattr(engine, "_finished", lambda *_: [(future, one)])
    monkeypatch.setattr(distributed, "as_completed", lambda *_, **__: None)
    noted = []
    assert list(engine._round(client, [source], [0], tasks.named, lambda *what: noted.append(what))) == []
    assert noted == [(0, one)]


class Hashed:
    def __init__(self, future):
        self.key = future.key


def test_what_nothing_announces_is_taken_once_and_what_does_not_come_is_asked_for_again():
    """Fetching a result may fail: its worker died, or this version cannot unpickle it."""
    broken, there, gone, going = Ended(KeyError("x")), Ended("a"), Ended(OSError()), Ended("b", "pending")
    waiting = SimpleNamespace(lock=threading.Lock(), futures=dict.fromkeys((broken, there, gone, going), 1))
    (first, (_, error, _)), (second, answer) = engine._unheard(waiting)
    assert (first, second, answer) == (broken, there, "a")
    assert isinstance(error, KeyError)
    assert list(waiting.futures) == [gone, going]


class Ended:
    def __init__(self, answer, status="finished"):
        self.answer, self.status = answer, status

    def result(self, timeout):
        assert timeout
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


class Unloadable:
    """Cannot be unpickled where it arrives."""

    def __reduce__(self):
        return int, ("no number",)


def unloadable(_source):
    return Unloadable()


def test_a_result_that_cannot_be_read_here_is_said_and_not_waited_for(cluster, sources):
    [one] = run(sources("a"), engine="dask", scheduler=cluster.scheduler_address, work=unloadable)
    assert one.what == "could not be examined"
    assert "ValueError" in one.why


class Stopped:
    """A cluster of which one worker says nothing."""

    def run(self, *_, **__):
        threading.Event().wait(5)


def test_workers_that_say_nothing_are_said_and_not_waited_for(monkeypatch):
    monkeypatch.setattr(engine, "ANSWER_S", 0.05)
    told = []
    engine._say_versions(Stopped(), told.append)
    assert told == ["some workers do not answer: what they are at is waited for"]


class Workers:
    """Answers for two workers: one as here, one with an older Python and without this package."""

    def run(self, call, *args, on_error):
        assert on_error == "return"
        return {"one": call(*args), "two": "3.9.1" if not args else ModuleNotFoundError()}


def test_workers_of_another_version_are_said():
    told = []
    engine._say_versions(Workers(), told.append)
    assert len(told) == 2
    assert told[0].startswith("workers have Python 3.9.1, here is ")
    assert told[1].startswith("workers have tracehunch not installed, here is ")
