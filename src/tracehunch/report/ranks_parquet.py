"""All ranks as a table in a Parquet file: one row a rank, units in the names of columns."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.compare.ranks.model import RankRow, Ranks

_TIMES: Final = (
    "window_ns",
    "compute_ns",
    "exposed_communication_ns",
    "copy_ns",
    "communication_ns",
    "overlapped_ns",
    "waited_ns",
    "made_wait_ns",
)


def require() -> Any:
    """Return pyarrow. Raises TracehunchError where it is not installed."""
    try:
        import pyarrow  # noqa: ICN001, PLC0415 - an extra; the name is the package's
        import pyarrow.parquet  # noqa: PLC0415 - as above
    except ImportError:
        raise TracehunchError(
            "writing Parquet needs the package pyarrow",
            "it is not installed",
            "pip install 'tracehunch[parquet]', or choose -o ranks.json",
        ) from None
    return pyarrow


def render(ranks: Ranks) -> bytes:
    """Return the file. What a trace does not tell is null; idle time is a column for each cause.

    Raises:
        TracehunchError: pyarrow is not installed.

    """
    arrow = require()
    columns = _columns(ranks)
    schema = arrow.schema(
        [(name, _type(arrow, name)) for name in columns], metadata={"schema": "tracehunch/1"}
    )
    file = BytesIO()
    arrow.parquet.write_table(arrow.table(columns, schema=schema), file)
    return file.getvalue()


def _columns(ranks: Ranks) -> Mapping[str, list[Any]]:
    rows = ranks.rows
    causes = sorted({cause for row in rows for cause in row.idle_ns})
    clocks = {clock.rank: clock for clock in ranks.clocks}
    told = [clocks.get(row.rank) for row in rows]
    return {
        "rank": [row.rank for row in rows],
        "world_size": [ranks.world_size for _ in rows],
        "sources": [list(row.sources or row.labels) for row in rows],
        "rank_from": [row.rank_from for row in rows],
        "steps": [row.steps for row in rows],
        "step_us": [row.step_us for row in rows],
        "job_step_us": [row.job_step_us for row in rows],
        **{name: [getattr(row, name) for row in rows] for name in _TIMES},
        "idle_ns": [_idle_ns(row) for row in rows],
        **{f"idle_{_word(cause)}_ns": [row.idle_ns.get(cause, 0) for row in rows] for cause in causes},
        "clock_offset_ns": [clock.offset_ns if clock and clock.collectives else None for clock in told],
        "clock_error_ns": [clock.error_ns if clock and clock.collectives else None for clock in told],
        "findings": [[one.id for one in ranks.findings if _is_about(one.scope, row)] for row in rows],
    }


def _idle_ns(row: RankRow) -> int:
    return sum(row.idle_ns.values())


def _word(cause: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in cause.lower())


def _is_about(scope: str, row: RankRow) -> bool:
    return scope == f"rank {row.rank}"


def _type(arrow: Any, name: str) -> Any:
    if name in ("sources", "findings"):
        return arrow.list_(arrow.string())
    if name == "rank_from":
        return arrow.string()
    return arrow.float64() if name.endswith("step_us") else arrow.int64()
