"""What a report over all ranks says first and last: which job this is, findings, and what to type next."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Final

from tracehunch.report.finding_texts import FindingText, evidence_text
from tracehunch.report.ranks_rows import has_breakdown, usual_rank
from tracehunch.report.ranks_words import ranks_text
from tracehunch.trace.model import Notice
from tracehunch.units import join, plural, printable, size, time_range_us, time_us
from tracehunch.verdict import SEVERITIES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import RankRow, Ranks, Unread
    from tracehunch.verdict import Finding

SHOWN: Final = 8
"""Findings, unread files and facts that a report lists unless told otherwise."""

_RECORD: Final = "record with ProfilerActivity.CUDA"
_RANK: Final = re.compile(r"rank (\d{1,9})$")
_TOLD: Final = frozenset(
    {
        "clock-drift",
        "clock-unknown",
        "clocks-apart",
        "cut-before-gpu",
        "mixed-jobs",
        "no-collectives",
        "no-gpu-activity",
        "passed-over",
        "nothing-matched",
        "unmatched-collectives",
    }
)
_ORDINARY: Final = frozenset({"outside-window"})
"""Lossy, and yet of undamaged files: what the GPU did before the recording began."""

_UNREAD: Final = 3
"""Files that could not be read which stand above the findings."""

_JOBS: Final = 8
"""Jobs that were left out which are named, a line each."""

_EACH: Final = {"ProfilerStep": " a step", "whole": ""}
_FROM: Final = {"file name": "the name of the file", "order": "the order of the files"}


def named(sources: Sequence[str]) -> str:
    """Return what the report is called: what the user typed, the first few of many."""
    more = f" and {len(sources) - 3:,} more" if len(sources) > 3 else ""
    return f"{', '.join(printable(one) for one in sources[:3])}{more}"


def recorded_on(ranks: Ranks, sources: Sequence[str] = ()) -> list[tuple[str, str]]:
    """Return what was read, in lines of a label and a text: first which job, where there are several."""
    lines = [("job", _chosen(ranks, sources)), *_left_out(ranks), ("ranks", _ranks(ranks))]
    lines += [("from", _told_by(ranks)), ("on", _machine(ranks)), ("recorded", _recorded(ranks))]
    lines.append(("step", _job_step(ranks)))
    if len(ranks.unread) > _UNREAD:
        lines.append(("not read", f"{plural(len(ranks.unread), 'file')}, see the end of this report"))
    return [(label, text) for label, text in lines if text]


def _chosen(ranks: Ranks, sources: Sequence[str]) -> str:
    """Say which of several jobs is reported, and why that one; "" where there is one."""
    if not ranks.other_jobs or not ranks.rows:
        return ""
    jobs = f"{len(ranks.other_jobs) + 1} jobs"
    where = f"{plural(len(sources), 'place')} named, {jobs} there" if len(sources) > 1 else f"{jobs} here"
    return f"{where}; reported is the one with the most ranks, of those the newest: {_place(ranks)}"


def _place(ranks: Ranks) -> str:
    """Return where the files of the job are, as ``FOLDER (rank0.json ... rank1.json)``."""
    files = [printable(source) for row in ranks.rows for source in row.sources or row.labels]
    if len(files) == 1:
        return files[0]
    folders = {one.rpartition("/")[0] for one in files}
    if folders == {""} or len(folders) > 1:
        return f"{files[0]} ... {files[-1]}"
    return f"{folders.pop()} ({files[0].rpartition('/')[2]} ... {files[-1].rpartition('/')[2]})"


def _left_out(ranks: Ranks) -> list[tuple[str, str]]:
    told = [printable(one) for one in ranks.other_jobs]
    more = [f"{plural(len(told) - _JOBS, 'more job')}, all in the JSON"] if len(told) > _JOBS else []
    return [("left out", one) for one in (*told[:_JOBS], *more)]


def _job_step(ranks: Ranks) -> str:
    """Say how long the job takes for a step: ranks wait for each other, so that it is about the same."""
    known = [row.job_step_us for row in ranks.rows if row.job_step_us is not None]
    if not known:
        return ""
    return f"{time_range_us(min(known), max(known))} of the job on average: recorded window over steps"


def _ranks(ranks: Ranks) -> str:
    there = len(ranks.rows)
    if ranks.world_size is None:
        return f"{plural(there, 'rank')}; how many the job has, no file says"
    said = f"{there:,} of {ranks.world_size:,}"
    return f"{said}; {ranks_text(ranks.missing)} missing" if ranks.missing else said


def _told_by(ranks: Ranks) -> str:
    """Say how ranks are known where the files themselves do not tell."""
    parts = []
    for source, words in _FROM.items():
        taken = [row.rank for row in ranks.rows if row.rank_from == source]
        parts += [f"{ranks_text(taken)} by {words}"] if taken else []
    return f"{join(parts)}: the files do not tell their rank" if parts else ""


def _machine(ranks: Ranks) -> str:
    devices = join([printable(one) for one in ranks.devices])
    torch = f"torch {join([printable(one) for one in ranks.torch])}" if ranks.torch else ""
    return "; ".join(part for part in (devices, torch) if part)


def _recorded(ranks: Ranks) -> str:
    if not ranks.rows:
        return ""
    windows = [row.window_ns / 1e3 for row in ranks.rows if row.window_ns]
    steps = sorted({row.steps for row in ranks.rows})
    count = (
        f"{steps[0]}-{steps[-1]} steps" if len(steps) > 1 else plural(steps[0], "step") if steps[0] else ""
    )
    span = f"{time_range_us(min(windows), max(windows))} a rank, " if windows else ""
    return f"{span}{count or 'no profiler steps'}"


def without_gpu(ranks: Ranks) -> str:
    """Say which ranks recorded no GPU activity; "" where all did."""
    blind = [row.rank for row in ranks.rows if not has_breakdown(row) and not row.is_cut]
    cut = [row.rank for row in ranks.rows if not has_breakdown(row) and row.is_cut]
    said = [f"{ranks_text(cut)}: the file breaks off before any GPU activity"] if cut else []
    if blind and len(blind) == len(ranks.rows):
        said.append("no rank recorded GPU activity")
    elif blind:
        said.append(f"{ranks_text(blind)}: no GPU activity was recorded")
    fix = f"; {_RECORD}" if blind else ""
    return f"{'; '.join(said)}: where the time went cannot be told{fix}" if said else ""


def findings(ranks: Ranks) -> list[FindingText]:
    """Return findings in words, worst first, then by time at stake."""
    first = ranks.rows[0].rank if ranks.rows else 0
    return [_finding_text(one, at, first) for at, one in enumerate(ordered(ranks))]


def ordered(ranks: Ranks) -> list[Finding]:
    """Return findings, worst first, then by time at stake."""
    return sorted(ranks.findings, key=lambda one: (-SEVERITIES.index(one.severity), -one.time_at_stake_us))


def rank_of(one: Finding) -> int | None:
    """Return the rank that a finding is about; None where it is about all."""
    found = _RANK.match(one.subject)
    return int(found.group(1)) if found else None


def _finding_text(one: Finding, position: int, first: int) -> FindingText:
    rank = rank_of(one)
    evidence = evidence_text(one.evidence)
    evidence += f" in the file of rank {first if rank is None else rank}" if evidence else ""
    stake, each = one.time_at_stake_us, _EACH.get(one.scope, " a call")
    return FindingText(
        severity=one.severity,
        id=one.id,
        scope=printable(one.scope if rank is None else f"{one.scope} of rank {rank}"),
        stake=f"{time_us(stake)}{each} at stake" if stake else "",
        summary=printable(one.summary),
        cause=printable(one.cause),
        fix=printable(one.fix),
        evidence=f"{evidence}{'; ' if evidence else ''}{one.confidence} confidence",
        position=position,
    )


def notices(ranks: Ranks) -> list[Notice]:
    """Return what is odd about the files, harmless for any output, lost data first.

    What a section of the report tells anyway, as how clocks are apart, is left to it; so is what was passed
    over.
    """
    left = [one for one in ranks.notices if one.lossy or one.code not in _TOLD]
    found = [Notice(one.code, printable(one.message), one.lossy) for one in left]
    return sorted(found, key=lambda notice: not notice.lossy)


def alerts(ranks: Ranks) -> list[Notice]:
    """Return what makes the report doubtful, for its top: damage, missing ranks, files that gave nothing."""
    found = [one for one in notices(ranks) if _is_alert(one)]
    return found + [Notice("not read", unread_text(one), lossy=True) for one in ranks.unread[:_UNREAD]]


def remarks(ranks: Ranks) -> list[Notice]:
    """Return the notices that are no alerts."""
    return [one for one in notices(ranks) if not _is_alert(one)]


def passed_over(ranks: Ranks) -> list[str]:
    """Say how many files of a folder are no traces: nothing to be warned of."""
    return [printable(one.message) for one in ranks.notices if one.code == "passed-over"]


def unread_below(ranks: Ranks, *, all_files: bool) -> Sequence[Unread]:
    """Return the files that stand at the end: none where the alerts have them all."""
    if len(ranks.unread) <= _UNREAD:
        return ()
    return ranks.unread if all_files else ranks.unread[:SHOWN]


def _is_alert(one: Notice) -> bool:
    return one.code == "missing-ranks" or (one.lossy and one.code not in _ORDINARY)


def unread_text(one: Unread) -> str:
    """Return why a file gave nothing, in the words of its error."""
    n_bytes = f" ({size(one.file_bytes)})" if one.file_bytes is not None else ""
    why = f": {printable(one.why)}" if one.why else ""
    return f"{printable(one.label)}{n_bytes}: {printable(one.what)}{why}"


def next_command(ranks: Ranks, sources: Sequence[str] = ()) -> str:
    """Return the next command to type: the late rank against a usual one, the odd one, or a closer look."""
    suspect = suspect_rank(ranks)
    usual = usual_rank(ranks, suspect.rank) if suspect is not None else None
    if suspect is not None and usual is not None:
        return f"tracehunch diff {_file(usual)} {_file(suspect)}"
    shown = findings(ranks)
    if shown:
        return f"tracehunch explain {shown[0].id}"
    if ranks.rows:
        return f"tracehunch look {_file(ranks.rows[0])}"
    return f"tracehunch look {_quoted(sources[0]) if sources else 'TRACE'}"


def suspect_rank(ranks: Ranks) -> RankRow | None:
    """Return the rank to look at: what the worst finding about a rank is about, else the first odd one."""
    by_rank = {row.rank: row for row in ranks.rows}
    suspects = [*map(rank_of, ordered(ranks)), *(one.rank for one in ranks.odd)]
    return next((by_rank[rank] for rank in suspects if rank in by_rank), None)


def _file(row: RankRow) -> str:
    """Return a rank's first file as a shell takes it."""
    return _quoted((row.sources or row.labels or (f"RANK_{row.rank}",))[0])


def _quoted(text: str) -> str:
    return "TRACE" if text == "-" else shlex.quote(printable(text))
