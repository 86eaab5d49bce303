"""Calls of collectives, as recorded on two GPUs, and as other versions of PyTorch write them."""

from __future__ import annotations

import pytest
from tests.compare.ranks.recorded import raw

from tracehunch.trace.model import ABSENT

KEYS = ("Collective name", "dtype", "In msg nelems", "Out msg nelems", "Group size", "Process Group Name",
        "Process Group Description", "Process Group Ranks", "In split size", "Out split size")  # fmt: skip
PARTS = {
    # annotation: (kind on rank 0, ranks, bytes in, bytes out)
    "part_batch_both": ("recv+send", (0, 1), 2 * 4 << 16, 2 * 4 << 16),
    "part_batch_one_way": ("send", (0, 1), 7 * 4 << 16, 7 * 4 << 16),
    "part_plain": ("allreduce", (0, 1), 4 << 18, 4 << 18),
    "part_coal_reduce": ("allreduce_coalesced", (0, 1), 7 * 4 << 16, 7 * 4 << 16),
    "part_coal_gather": ("allgather_into_tensor_coalesced", (0, 1), 3 * 4 << 16, 6 * 4 << 16),
    "part_uneven_gather": ("all_gather", (0, 1), 4000, 8000),
    "part_even_gather": ("all_gather", (0, 1), 4 << 16, 8 << 16),
    "part_uneven_scatter": ("reduce_scatter", (0, 1), 8000, 4000),
    "part_a2a_list": ("all_to_all", (0, 1), 8 << 16, 8 << 16),
    "part_coalesced_op": ("allreduce_coalesced", (0, 1), 7 * 4 << 16, 7 * 4 << 16),
    "part_barrier": ("barrier", (0, 1), 0, 0),
    "part_sym": ("one_shot_all_reduce", None, ABSENT, ABSENT),
}
"""What the recorded program did in each of its parts, once a step: from its source."""


def rows(collectives):
    """Columns as a list of dictionaries, codes as what they stand for."""
    found = []
    for at in range(len(collectives)):
        row = {}
        for name in ("number", "sequence", "in_bytes", "out_bytes", "launch_ns", "start_ns", "end_ns",
                     "exposed_ns", "device", "step", "event", "peer"):  # fmt: skip
            row[name] = int(getattr(collectives, name)[at])
        for name in ("kind", "group", "dtype", "op"):
            code = int(getattr(collectives, name)[at])
            row[name] = None if code == ABSENT else getattr(collectives, f"{name}s")[code]
        found.append(row)
    return found


def without(row, *names):
    return {name: value for name, value in row.items() if name not in names}


def kernels(document, prefix="nccl"):
    return [e for e in document["traceEvents"] if e.get("cat") == "kernel" and e["name"].startswith(prefix)]


def test_each_collective_of_a_training_step_is_one_entry_with_its_args(examined):
    document = raw("h200/ranks/ddp/rank0")
    one = examined("h200/ranks/ddp/rank0")
    found = {row["event"]: row for row in rows(one.collectives)}
    expected = kernels(document)
    assert len(found) == len(expected) == 18
    for event in expected:
        row, args = found[document["traceEvents"].index(event)], event["args"]
        assert (row["kind"], row["dtype"]) == (args["Collective name"], args["dtype"])
        assert row["in_bytes"] == row["out_bytes"] == 2 * args["In msg nelems"]
        group = row["group"]
        assert (group.name, group.description, group.ranks, group.size) == ("0", "default_pg", (0, 1), 2)
        base = document["baseTimeNanoseconds"]
        assert row["start_ns"] - base == pytest.approx(event["ts"] * 1e3, abs=1)
        assert row["end_ns"] - row["start_ns"] == pytest.approx(event["dur"] * 1e3, abs=1)
        assert row["step"] in (2, 3, 4)
        assert row["op"] == "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    assert [row["number"] for row in rows(one.collectives)] == list(range(18))


def test_what_was_exposed_adds_up_to_the_breakdowns(examined):
    for name in ("h200/ranks/ddp/rank0", "h200/ranks/ddp/rank1", "h200_collectives/parts_rank1"):
        one = examined(name)
        assert one.collectives.exposed_ns.sum() == one.breakdown[0].exposed_communication_ns


def test_kernels_from_before_the_recording_are_in_no_group(examined):
    early = [row for row in rows(examined("h200/ranks/ddp/rank1").collectives) if row["launch_ns"] == ABSENT]
    assert len(early) == 3
    for row in early:
        assert (row["group"], row["number"], row["step"], row["in_bytes"]) == (None, ABSENT, ABSENT, ABSENT)
        assert (row["kind"], row["dtype"]) == ("allreduce", "BFloat16")  # as the kernel's name has it
        assert row["end_ns"] > row["start_ns"]


@pytest.mark.parametrize("part", PARTS)
def test_each_kind_of_call_is_one_entry_a_step(examined, part):
    kind, ranks, in_bytes, out_bytes = PARTS[part]
    found = [row for row in rows(examined("h200_collectives/parts_rank0").collectives) if row["op"] == part]
    assert [row["step"] for row in found] == [2, 3]
    for row in found:
        assert (row["kind"], row["in_bytes"], row["out_bytes"]) == (kind, in_bytes, out_bytes)
        assert (row["group"].ranks if row["group"] else None) == ranks


def test_nothing_is_left_out_and_nothing_is_counted_twice(examined):
    for rank in (0, 1):
        document = raw(f"h200_collectives/parts_rank{rank}")
        expected = kernels(document) + kernels(document, "void (anonymous namespace)::one_shot")
        assert len(examined(f"h200_collectives/parts_rank{rank}").collectives) == len(expected) == 36


def test_both_ranks_number_the_calls_of_a_group_alike(examined):
    sides = [
        {
            (row["group"].name, row["group"].ranks, row["number"]): row
            for row in rows(examined(f"h200_collectives/parts_rank{rank}").collectives)
            if row["group"]
        }
        for rank in (0, 1)
    ]
    assert sides[0].keys() == sides[1].keys()
    assert len(sides[0]) == 34
    for key, first in sides[0].items():
        second = sides[1][key]
        assert first["op"] == second["op"]
        assert (first["kind"], second["kind"]) == ("send", "recv") or first["kind"] == second["kind"]
        assert abs(first["end_ns"] - second["end_ns"]) < 300_000


def test_a_send_is_in_a_group_of_its_two_ranks_and_not_counted_with_the_rest(examined):
    sent, received = (
        next(
            row
            for row in rows(examined(f"h200_collectives/parts_rank{rank}").collectives)
            if row["op"] == "part_batch_one_way"
        )
        for rank in (0, 1)
    )
    assert (sent["kind"], received["kind"]) == ("send", "recv")
    assert sent["group"] == received["group"]
    assert (sent["group"].name, sent["group"].ranks, sent["group"].size) == ("0:0->1", (0, 1), 2)
    assert (sent["number"], received["number"]) == (0, 0)
    assert (sent["peer"], received["peer"]) == (1, 0)


def test_groups_of_the_same_ranks_are_kept_apart(examined):
    found = rows(examined("h200_collectives/groups_rank1").collectives)
    by_group = {}
    for row in found:
        by_group.setdefault(row["group"].name, []).append(row["kind"])
    assert by_group == {"0": ["allreduce", "reduce"] * 12, "1": ["_allgather_base", "broadcast"] * 12}
    assert {(row["in_bytes"], row["out_bytes"]) for row in found if row["kind"] == "_allgather_base"} == {
        (262144, 524288)
    }


def test_args_that_only_the_op_has_do_as_well(examined, changed):
    def strip(document):
        for event in kernels(document):
            for key in KEYS:
                event["args"].pop(key, None)

    after = rows(changed("h200_collectives/groups_rank1", strip).collectives)
    assert after == rows(examined("h200_collectives/groups_rank1").collectives)


def test_without_args_the_names_of_ops_tell_the_kind_and_nothing_the_group(changed):
    def strip(document):
        for event in document["traceEvents"]:
            if event.get("cat") in ("kernel", "cpu_op"):
                for key in KEYS:
                    event["args"].pop(key, None)

    found = rows(changed("h200/ranks/tp/rank0", strip).collectives)
    assert len(found) == 18
    for row in found:
        assert (row["kind"], row["dtype"], row["group"], row["number"]) == (
            "allreduce",
            "BFloat16",
            None,
            ABSENT,
        )
        assert (row["in_bytes"], row["out_bytes"], row["op"]) == (ABSENT, ABSENT, "tp_step")


def test_without_anything_but_the_kernel_its_name_tells(changed):
    def strip(document):
        gpu = ("kernel", "gpu_memcpy", "gpu_memset")
        document["traceEvents"] = [e for e in document["traceEvents"] if e.get("cat") in gpu]
        for event in kernels(document):
            event["args"] = {k: v for k, v in event["args"].items() if k not in KEYS}

    found = rows(changed("h200_collectives/groups_rank1", strip).collectives)
    assert {row["kind"] for row in found} == {"allreduce", "allgather", "broadcast", "reduce"}
    assert {row["dtype"] for row in found if row["kind"] == "reduce"} == {"Float"}
    assert {row["dtype"] for row in found if row["kind"] == "broadcast"} == {None}
    assert {(row["group"], row["op"], row["launch_ns"]) for row in found} == {(None, None, ABSENT)}


def with_args(**values):
    """Give kernels and ops of collectives these args; None takes one away."""

    def change(document):
        for event in document["traceEvents"]:
            args = event.get("args", {})
            if "Collective name" in args:
                for key, value in values.items():
                    args[key.replace("_", " ")] = value
                event["args"] = {key: value for key, value in args.items() if value is not None}

    return change


def groups_after(changed, change, header=None):
    def both(document):
        change(document)
        if header is not None:
            header(document)

    return changed("h200/ranks/tp/rank0", both).collectives.groups


def test_ranks_of_a_large_group_are_completed_from_the_header(changed):
    cut = with_args(Process_Group_Ranks="[0, 2, ..., 126]", Group_size=64, Global_rank_start=None)

    def header(document):
        ranks = list(range(0, 128, 2))
        document["distributedInfo"]["pg_config"] = [{"pg_name": "0", "pg_size": 64, "ranks": ranks}]

    (group,) = groups_after(changed, cut, header)
    assert (group.ranks, group.size) == (tuple(range(0, 128, 2)), 64)


def test_ranks_of_a_large_group_are_completed_from_its_stride(changed):
    cut = with_args(
        Process_Group_Ranks="[3, 11, ...]", Group_size=40, Global_rank_start=3, Global_rank_stride=8
    )

    def header(document):
        del document["distributedInfo"]["pg_config"]

    (group,) = groups_after(changed, cut, header)
    assert (group.ranks, group.size) == (tuple(range(3, 323, 8)), 40)


def test_ranks_that_nobody_lists_are_not_made_up(changed):
    cut = with_args(
        Process_Group_Ranks="[3, 9, ...]", Group_size=40, Global_rank_start=None, Global_rank_stride=None
    )
    (group,) = groups_after(changed, cut, lambda document: document["distributedInfo"].pop("pg_config"))
    assert (group.name, group.ranks, group.size) == ("0", (), 40)


def test_a_group_without_a_name_is_known_where_it_can_only_be_that_of_all(changed):
    nameless = dict.fromkeys(("Process_Group_Name", "Process_Group_Ranks", "Process_Group_Description"))
    (group,) = groups_after(changed, with_args(**nameless))
    assert (group.name, group.ranks, group.size) == ("", (0, 1), 2)
    wider = lambda document: document["distributedInfo"].update(world_size=8)  # noqa: E731  # a header, once
    assert groups_after(changed, with_args(**nameless), wider) == ()


def test_sequence_numbers_are_kept_but_for_sends_and_receives(changed):
    numbered = with_args(Seq=41)
    found = rows(changed("h200_collectives/parts_rank0", numbered).collectives)
    assert {row["sequence"] for row in found if row["kind"] in ("send", "recv+send")} == {ABSENT}
    assert {row["sequence"] for row in found if row["kind"] in ("allreduce", "barrier")} == {41}


@pytest.mark.parametrize("value", ["NaN", -3, [1], {"a": 1}, 1e300, 10**40, True, "9" * 60])
def test_sizes_that_are_none_are_not_known(changed, value):
    found = rows(changed("h200/ranks/tp/rank0", with_args(In_msg_nelems=value)).collectives)
    assert {row["in_bytes"] for row in found} == {ABSENT}
    assert {row["out_bytes"] for row in found} == {8388608}


@pytest.mark.parametrize("value", [7, None, "", [], {}, "\x1b[31m" * 200, ["a"]])
def test_odd_names_do_no_harm(changed, value):
    odd = with_args(Process_Group_Name=value, Process_Group_Description=value, dtype=value)
    one = changed("h200/ranks/tp/rank0", odd).collectives
    assert len(one) == 18
    assert all(len(group.name) <= 200 for group in one.groups)


def test_several_kernels_of_one_call_are_one_entry(examined, changed):
    def twice(document):
        """Let each collective launch a second kernel, 10 us after the first has ended."""
        events, more = document["traceEvents"], []
        launches = {e["args"]["correlation"]: e for e in events if "correlation" in e.get("args", {})
                    and e.get("cat") in ("cuda_runtime", "cuda_driver")}  # fmt: skip
        for number, event in enumerate(kernels(document)):
            launch = launches[event["args"]["correlation"]]
            own = {"correlation": 900_000 + number}
            begin = event["ts"] + event["dur"] + 10
            more += [
                {**event, "ts": begin, "dur": 5.0, "args": event["args"] | own},
                {**launch, "ts": launch["ts"] + launch["dur"], "dur": 0.1, "args": launch["args"] | own},
            ]
        events += more

    before = rows(examined("h200/ranks/tp/rank0").collectives)
    after = rows(changed("h200/ranks/tp/rank0", twice).collectives)
    assert [without(row, "end_ns", "exposed_ns", "event") for row in after] == [
        without(row, "end_ns", "exposed_ns", "event") for row in before
    ]
    for first, both in zip(before, after, strict=True):
        assert both["end_ns"] - first["end_ns"] == pytest.approx(15_000, abs=2)
        assert 0 <= both["exposed_ns"] - first["exposed_ns"] <= 5_002  # where no compute runs beside it


def test_a_batch_with_several_ranks_is_a_call_of_all_of_them(changed):
    def ring(document):
        """Make it rank 1 of 4, which sends to 2 and receives from 0."""
        document["distributedInfo"].update(rank=1, world_size=4)
        for event in document["traceEvents"]:
            args = event.get("args", {})
            if args.get("Collective name") == "send":
                args["Dst Rank"] = 2
            if args.get("Collective name") == "recv":
                args["Src Rank"] = 0
            if "Process Group Ranks" in args:
                args.update({"Process Group Ranks": "[0, 1, 2, 3]", "Group size": 4})

    found = rows(changed("h200_collectives/parts_rank1", ring).collectives)
    batches = [row for row in found if row["op"] == "part_batch_both"]
    assert {(row["group"].name, row["group"].ranks, row["peer"]) for row in batches} == {
        ("0:0<->1<->2", (0, 1, 2), ABSENT)
    }
    one_way = [row for row in found if row["op"] == "part_batch_one_way"]
    assert {(row["group"].name, row["group"].ranks, row["peer"]) for row in one_way} == {
        ("0:0->1", (0, 1), 0)
    }


def test_calls_that_have_no_kernel_for_another_reason_are_not_part_of_a_batch(examined, changed):
    def alone(document):
        """Let all waits be all-reduces in a group of one rank, for which nothing is launched."""
        waits = [e for e in document["traceEvents"] if e.get("args", {}).get("Collective name") == "wait"]
        assert len(waits) > 4
        for event in waits:
            event["args"].update({"Collective name": "allreduce", "Process Group Name": "9"})

    after = rows(changed("h200_collectives/parts_rank0", alone).collectives)
    assert after == rows(examined("h200_collectives/parts_rank0").collectives)


def test_kernels_of_a_cuda_graph_are_one_entry_each_and_in_no_group(changed):
    def replay(document):
        """Let the launches of batches be those of graphs."""
        batches = [e for e in kernels(document) if "Collective name" not in e["args"]]
        assert len(batches) == 8
        numbers = {e["args"]["correlation"] for e in batches}
        for event in document["traceEvents"]:
            own = event.get("args", {}).get("correlation")
            if event.get("cat") in ("cuda_runtime", "cuda_driver") and own in numbers:
                event.update(cat="cuda_runtime", name="cudaGraphLaunch")

    found = rows(changed("h200_collectives/parts_rank0", replay).collectives)
    assert len(found) == 36
    replayed = [row for row in found if row["op"] in ("part_batch_both", "part_coal_reduce")]
    assert {(row["group"], row["in_bytes"]) for row in replayed} == {(None, ABSENT)}
    assert all(row["launch_ns"] != ABSENT for row in replayed)


def test_a_send_of_which_the_ranks_are_not_known_is_in_no_group(changed):
    def nobody(document):
        document["distributedInfo"] = {"backend": "nccl"}
        for event in document["traceEvents"]:
            args = event.get("args", {})
            for key in ("Dst Rank", "Src Rank", "Process Group Ranks", "Global rank start"):
                args.pop(key, None)

    found = rows(changed("h200_collectives/parts_rank0", nobody).collectives)
    talks = [row for row in found if row["kind"] in ("send", "recv+send")]
    assert len(talks) == 4
    assert {(row["group"], row["number"], row["peer"]) for row in talks} == {(None, ABSENT, ABSENT)}
    assert {row["group"].name for row in found if row["kind"] == "allreduce"} == {"0"}
