"""All ranks as a table: one row a rank, units in column names, null where a trace does not tell."""

import io
import sys

import pytest

from tracehunch.compare.ranks import compare
from tracehunch.engines.task import examined
from tracehunch.errors import TracehunchError
from tracehunch.report import ranks_parquet
from tracehunch.trace.discover import discover

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture(scope="module")
def ranks():
    from tests.conftest import H200  # noqa: PLC0415  # fixtures of a function do not fit a module's

    return compare([examined(one) for one in discover([H200 / "ranks" / "ddp"]).sources])


def rows(data):
    return parquet.read_table(io.BytesIO(data)).to_pylist()


def test_a_row_holds_what_the_rank_does(ranks):
    table = rows(ranks_parquet.render(ranks))
    assert [row["rank"] for row in table] == [0, 1]
    for row, rank in zip(table, ranks.rows, strict=True):
        assert row["compute_ns"] == rank.compute_ns
        assert row["step_us"] == rank.step_us
        parts = ("compute_ns", "exposed_communication_ns", "copy_ns", "idle_ns")
        assert sum(row[part] for part in parts) == row["window_ns"]
        causes = [name for name in row if name.startswith("idle_") and name != "idle_ns"]
        assert sum(row[name] for name in causes) == row["idle_ns"]
        assert row["sources"][0].endswith(f"rank{rank.rank}.json.gz")


def test_every_number_has_its_unit_in_its_name(ranks):
    table = parquet.read_table(io.BytesIO(ranks_parquet.render(ranks)))
    plain = {"rank", "world_size", "steps"}
    for field in table.schema:
        if field.type in (arrow.int64(), arrow.float64()) and field.name not in plain:
            assert field.name.endswith(("_ns", "_us")), field.name


def test_the_same_job_gives_the_same_bytes(ranks):
    assert ranks_parquet.render(ranks) == ranks_parquet.render(ranks)


def test_without_the_package(ranks, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TracehunchError, match=r"choose -o ranks\.json"):
        ranks_parquet.render(ranks)
