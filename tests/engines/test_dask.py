"""The Dask engine on real clusters: the same answer as here, whatever becomes of a worker."""

import logging
import socket
import sys

import pytest
from tests.compare.ranks.made import Straggler, make

from tracehunch.compare.ranks import compare
from tracehunch.engines import dask as engine
from tracehunch.engines import run
from tracehunch.engines.task import examined
from tracehunch.errors import TracehunchError
from tracehunch.report import ranks_json
from tracehunch.trace.discover import discover

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.xdist_group("dask")


def whats(results):
    return [f"{one.source}: {one.what}" for one in results]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """256 ranks made from the recorded two-GPU job."""
    folder = tmp_path_factory.mktemp("job")
    make(folder, 256, straggler=Straggler(rank=77, extra_us=2_000), packed=True)
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
    some = files[:32]
    assert report(run(some, workers=1)) == report(here[:32])


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


def test_a_scheduler_that_is_not_there_is_one_error(sources, monkeypatch):
    monkeypatch.setattr(engine, "ANSWER_S", 0.5)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
    with pytest.raises(TracehunchError, match=f"scheduler {address} does not answer"):
        run(sources("a"), engine="dask", scheduler=address)


@pytest.mark.parametrize("address", ["nonsense", "foo://127.0.0.1:1"])
def test_what_is_no_address(address, sources):
    with pytest.raises(TracehunchError, match=f"scheduler {address} is no address"):
        run(sources("a"), engine="dask", scheduler=address)


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
