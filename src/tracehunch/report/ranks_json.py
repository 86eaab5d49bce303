"""Many ranks as JSON, schema "tracehunch/1"; findings and warnings are the objects of ``look``.

```
{"schema": "tracehunch/1",
 "job": {"world_size", "ranks", "missing": [ranks], "torch": [...], "devices": [...], "left_out": [...]},
 "findings": [FINDING + "rank"],
 "ranks": [{"rank", "rank_from": "distributedInfo|file name|order", "files": [...], "steps", "step_us",
            "job_step_us", "window_us", "compute_us", "exposed_communication_us", "copy_us",
            "idle_us": {cause: us}, "communication_us", "overlapped_us", "waited_us", "made_wait_us"}],
 "collectives": [{"kind", "group", "groups", "group_size", "least_bytes", "most_bytes", "count", "median_us",
                  "bus_bytes_per_s", "median_skew_us", "most_skew_us", "clock_error_us", "last_rank",
                  "last_count"}],
 "late": [{"rank", "waited_us", "collectives", "among", "beyond_clock_error", "by_rank_us": {rank: us}}],
 "matched": [{"group", "kind", "number", "dtype", "bytes", "group_size", "step", "at_us", "skew_us",
              "took_us", "last_rank", "ranks"}],
 "unmatched": 0,
 "lateness": {"ranks": [[first, last]], "collectives": [[first, last]], "steps": [[first, last]],
              "late_us": [[...]]},
 "clocks": [{"rank", "offset_us", "error_us", "drift_us_per_s", "collectives"}],
 "odd": [{"rank", "scope", "key", "seen", "median", "ranks"}],
 "warnings": [{"code", "message"}], "unread": [{"file", "what", "why", "file_bytes"}]}
```
Shares of a rank sum to its window: compute, exposed communication, copies and idle. What cannot be told is
absent; in ``lateness`` alone it is null, so that rows keep their places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report.json_report import SCHEMA, Object, encode, finding_object, json_text, json_value
from tracehunch.report.ranks_clocks import reference_rank
from tracehunch.report.ranks_collectives import collective_rows, latecomers
from tracehunch.report.ranks_lateness import lateness
from tracehunch.report.ranks_rows import has_breakdown
from tracehunch.report.ranks_summary import ordered, rank_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.compare.ranks.model import Clock, Matched, Odd, RankRow, Ranks, Unread
    from tracehunch.report.ranks_collectives import CollectiveRow, Late
    from tracehunch.report.ranks_lateness import Lateness
    from tracehunch.verdict import Finding


def render(ranks: Ranks) -> bytes:
    """Return the report as indented JSON in UTF-8."""
    return encode(ranks_object(ranks))


def ranks_object(ranks: Ranks) -> Object:
    """Return everything that is said of a job."""
    cells = lateness(ranks)
    return {
        "schema": SCHEMA,
        "job": _job(ranks),
        "findings": [_finding(one) for one in ordered(ranks)],
        "ranks": [_rank(row) for row in ranks.rows],
        "collectives": [_collective(row) for row in collective_rows(ranks)],
        "late": [_late(one) for one in latecomers(ranks)],
        "matched": _matched(ranks),
        "unmatched": ranks.unmatched,
        **({} if cells is None else {"lateness": lateness_object(cells)}),
        "clocks": _clocks(ranks),
        "odd": [_odd(one) for one in ranks.odd],
        "warnings": [{"code": one.code, "message": json_text(one.message)} for one in ranks.notices],
        "unread": [_unread(one) for one in ranks.unread],
    }


def _told(values: Mapping[str, object]) -> Object:
    """Leave out what cannot be told."""
    return {key: value for key, value in values.items() if value is not None}


def _us(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e3


def _job(ranks: Ranks) -> Object:
    return _told(
        {
            "world_size": ranks.world_size,
            "ranks": len(ranks.rows),
            "missing": ranks.missing,
            "torch": [json_text(one) for one in ranks.torch],
            "devices": [json_text(one) for one in ranks.devices],
            "left_out": [json_text(one) for one in ranks.other_jobs],
        }
    )


def _finding(one: Finding) -> Object:
    rank = rank_of(one)
    return finding_object(one) | ({} if rank is None else {"rank": rank})


def _rank(row: RankRow) -> Object:
    said: Object = {
        "rank": row.rank,
        "rank_from": row.rank_from,
        "files": [json_text(label) for label in row.labels],
        "steps": row.steps,
        "step_us": row.step_us,
        "job_step_us": row.job_step_us,
        "window_us": _us(row.window_ns or None),
    }
    where: Object = {
        "compute_us": _us(row.compute_ns),
        "exposed_communication_us": _us(row.exposed_communication_ns),
        "copy_us": _us(row.copy_ns),
        "idle_us": {json_text(cause): _us(ns) for cause, ns in sorted(row.idle_ns.items())},
        "communication_us": _us(row.communication_ns),
        "overlapped_us": _us(row.overlapped_ns),
    }
    waits: Object = {"waited_us": _us(row.waited_ns), "made_wait_us": _us(row.made_wait_ns)}
    return _told(said | (where if has_breakdown(row) else {}) | waits)


def _collective(row: CollectiveRow) -> Object:
    return _told(
        {
            "kind": json_text(row.kind),
            "group": json_text(row.group) or None,
            "groups": row.groups,
            "group_size": row.group_size,
            "least_bytes": row.least_bytes,
            "most_bytes": row.most_bytes,
            "count": row.count,
            "median_us": row.took_us,
            "bus_bytes_per_s": row.bus_bytes_per_s,
            "median_skew_us": row.skew_us,
            "most_skew_us": row.most_skew_us,
            "clock_error_us": row.clock_error_us,
            "last_rank": row.last_rank,
            "last_count": row.last_count if row.last_rank is not None else None,
        }
    )


def _late(one: Late) -> Object:
    return {
        "rank": one.rank,
        "waited_us": one.waited_us,
        "collectives": one.collectives,
        "among": one.among,
        "beyond_clock_error": one.is_sure,
        "by_rank_us": {str(rank): us for rank, us in one.waiting_us.items()},
    }


def _matched(ranks: Ranks) -> list[Object]:
    ordered = sorted(ranks.matched, key=lambda one: (one.first_start_ns, one.group, one.number))
    return [_one_matched(one, ordered[0].first_start_ns) for one in ordered]


def _one_matched(one: Matched, origin_ns: int) -> Object:
    return _told(
        {
            "group": json_text(one.group),
            "kind": json_text(one.kind),
            "number": one.number,
            "dtype": json_text(one.dtype) or None,
            "bytes": one.bytes,
            "group_size": one.group_size,
            "step": one.step,
            "at_us": _us(one.first_start_ns - origin_ns),
            "skew_us": _us(one.skew_ns),
            "took_us": _us(one.end_ns - one.last_start_ns),
            "last_rank": one.last_rank,
            "ranks": len(one.rows),
        }
    )


def lateness_object(cells: Lateness) -> Object:
    """Return how late each rank came to each collective, in the cells that a picture has."""
    steps = {"steps": cells.steps} if all(one is not None for one in cells.steps) else {}
    return {"ranks": cells.ranks, "collectives": cells.collectives, **steps, "late_us": cells.late_us}


def _clocks(ranks: Ranks) -> list[Object]:
    reference = reference_rank(ranks)
    return [_clock(one, is_told=bool(one.collectives) or one.rank == reference) for one in ranks.clocks]


def _clock(one: Clock, *, is_told: bool) -> Object:
    told: Object = {"offset_us": _us(one.offset_ns), "error_us": _us(one.error_ns)} if is_told else {}
    told |= {"drift_us_per_s": one.drift_ppm} if one.drift_ppm else {}
    return {"rank": one.rank, **told, "collectives": one.collectives}


def _odd(one: Odd) -> Object:
    return {
        "rank": one.rank,
        "scope": json_text(one.scope),
        "key": json_text(one.key),
        "seen": json_value(one.seen),
        "median": json_value(one.median),
        "ranks": one.ranks,
    }


def _unread(one: Unread) -> Object:
    return _told(
        {
            "file": json_text(one.label),
            "what": json_text(one.what),
            "why": json_text(one.why) or None,
            "file_bytes": one.file_bytes,
        }
    )
