"""What streams wait for where nobody recorded it, and activities whose launch was not recorded."""

from __future__ import annotations

from tests.compare.critical.made import Made, after, kinds


def branches(join: int) -> Made:
    """One CUDA graph: a, then b on the same stream and c on another; d follows the one that ends last."""
    made = Made()
    made.step(1, 0, 250)
    graph = made.call("cudaGraphLaunch", 0, 10)
    made.gpu("a", 15, 55, of=graph)
    made.gpu("b", 57, 77, of=graph)
    made.gpu("c", 57, join, of=graph, stream=8)
    made.gpu("d", join + 2, 180, of=graph)
    made.call("cudaDeviceSynchronize", 10, 190)
    return made


def test_branches_of_a_cuda_graph_that_join():
    path = branches(157).path()
    assert kinds(path) == {
        "kernel": 161,
        "outside ops": 60,
        "launch call": 10,
        "wait call": 10,
        "launch latency": 5,
        "device gap": 4,
    }
    assert [one.name for one in path.contributors if one.kind == "kernel"] == ["c", "a", "d"]


def test_short_branches_that_join():
    names = {one.name for one in branches(84).path().contributors if one.kind == "kernel"}
    assert names == {"a", "c", "d"}


def test_the_default_stream_waits_for_others():
    made = Made()
    made.step(1, 0, 300)
    made.launch(0, 10, "first", 15, 200, stream=13)
    made.launch(10, 20, "second", 202, 260, stream=7)
    made.call("cudaDeviceSynchronize", 30, 265)
    path = made.path()
    assert kinds(path) == {
        "kernel": 243,
        "outside ops": 35,
        "launch call": 10,
        "launch latency": 5,
        "wait call": 5,
        "device gap": 2,
    }
    assert any("inferred" in note for note in path.notes)


def unlinked(begun: float, made: Made, number: int) -> None:
    """Add a step of 400: a, a copy whose launch is not in the trace, b."""
    made.step(number, begun, begun + 400)
    made.launch(begun, begun + 10, "a", begun + 15, begun + 100)
    name = "Memcpy DtoD (Device -> Device)"
    made.gpu(name, begun + 102, begun + 202, of=99_000 + number, cat="gpu_memcpy")
    made.launch(begun + 20, begun + 30, "b", begun + 204, begun + 304)
    made.call("cudaDeviceSynchronize", begun + 30, begun + 310)
    made.op("aten::x", begun + 310, begun + 400)


def test_an_activity_without_its_launch_does_not_cut_the_path():
    made = Made()
    for number in range(3):
        unlinked(400 * number, made, number + 1)
    path = made.path("ProfilerStep#2")
    assert kinds(path) == {
        "kernel": 185,
        "copy": 100,
        "op": 90,
        "launch call": 10,
        "wait call": 6,
        "launch latency": 5,
        "device gap": 4,
    }
    assert after(path)["copies"] == 300


def test_what_was_launched_before_the_recording_is_not_the_steps():
    made = Made()
    made._number = 50  # as in a process that launched before
    made.gpu("earlier", 50, 95, of=3)
    made.step(1, 10, 300)
    made.launch(10, 20, "own", 97, 197)
    made.call("cudaDeviceSynchronize", 20, 200)
    made.op("aten::x", 200, 300)
    path = made.path()
    assert path.before_ns == 85_000
    assert kinds(path) == {"kernel": 100, "op": 100, "wait call": 3, "device gap": 2}


def test_what_lies_between_ops_is_called_so():
    made = Made()
    made.step(1, 0, 100)
    made.add("user_annotation", "outer", 5, 90)
    made.add("user_annotation", "inner", 10, 80)
    made.op("aten::x", 20, 60)
    found = {one.name: one.time_ns for one in made.path().contributors if one.kind == "outside ops"}
    assert found == {
        "between ops in inner": 30_000,
        "between ops in outer": 15_000,
        "between ops": 15_000,
    }
