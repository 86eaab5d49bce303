"""What ops were called with, for many rows at once, against what each row's arguments hold."""

import json
from pathlib import Path

import numpy as np
import pytest

from tracehunch.trace import Cat, Trace, read, read_bytes

KEYS = ("Input Dims", "Input type", "Input Strides", "Concrete Inputs")


def check(trace: Trace, rows: np.ndarray) -> int:
    """Compare each row with its arguments; how many distinct inputs there are."""
    code, given = trace.inputs_of(rows)
    for row, at in zip(rows.tolist(), code.tolist(), strict=True):
        args, one = trace.args_of(row), given[at]
        assert (one.dims, one.types, one.strides, one.values) == tuple(args.get(key) for key in KEYS)
    assert sorted(set(code.tolist())) == list(range(len(given)))
    return len(given)


@pytest.mark.parametrize("name", ["models/llama_sdpa_train", "seeds/naive", "ops/geglu_compiled"])
def test_inputs_are_those_of_each_row(h200: Path, name: str) -> None:
    trace = read(h200 / f"{name}.json.gz")
    rows = trace.rows(Cat.CPU_OP)
    distinct = check(trace, rows)
    assert distinct < len(rows) / 3
    assert check(trace, rows[::-3]) <= distinct  # in any order


def test_odd_arguments_are_none() -> None:
    odd = [
        None,
        [],
        "x",
        5,
        {},
        {"Input Dims": 3},
        {"Input Dims": [[2]], "Input type": None},
        {"Input Dims": [1e999]},
    ]
    text = json.dumps(
        {"traceEvents": [
            {"ph": "X", "cat": "cpu_op", "name": "f", "pid": 1, "tid": 1, "ts": at, "dur": 1, "args": args}
            for at, args in enumerate(odd)
        ]}
    )  # fmt: skip
    trace = read_bytes(text.replace("Infinity", "1e999").encode(), "odd.json")
    check(trace, trace.rows(Cat.CPU_OP))


def test_a_damaged_piece_keeps_its_neighbours_inputs(h200: Path) -> None:
    import gzip  # noqa: PLC0415  # only here

    text = gzip.decompress((h200 / "seeds" / "shapes_naive.json.gz").read_bytes())
    at = text.index(b'"aten::_softmax"')
    trace = read_bytes(text[:at] + b"\x00 broken " + text[at + 9 :], "damaged.json")
    assert trace.notices
    assert check(trace, trace.rows(Cat.CPU_OP)) > 5


def test_no_rows_have_no_inputs(h200: Path) -> None:
    code, given = read(h200 / "seeds" / "naive.json.gz").inputs_of(np.zeros(0, dtype=np.int64))
    assert (code.size, given) == (0, ())


def test_one_row_is_read_as_many_are(h200: Path) -> None:
    together = read(h200 / "models" / "llama_sdpa_train.json.gz")
    alone = read(h200 / "models" / "llama_sdpa_train.json.gz")
    rows = together.rows(Cat.CPU_OP)[::7]
    code, given = together.inputs_of(rows)
    assert [alone.input_of(row) for row in rows[::-1].tolist()] == [given[at] for at in code[::-1].tolist()]
    assert check(alone, rows) == len(given)  # some known, some not


def test_what_was_read_is_not_read_again(h200: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = read(h200 / "models" / "llama_sdpa_train.json.gz")
    rows = trace.rows(Cat.CPU_OP)
    first = trace.inputs_of(rows[::2])
    monkeypatch.setattr("tracehunch.trace.inputs._holders", lambda *_: pytest.fail("read again"))
    again = trace.inputs_of(rows[::2])
    assert np.array_equal(again[0], first[0])
    assert again[1] == first[1]
    assert trace.input_of(int(rows[2])) == first[1][first[0][1]]
    with pytest.raises(pytest.fail.Exception, match="read again"):
        trace.input_of(int(rows[1]))


def test_inputs_are_numbered_by_where_they_come_first(h200: Path) -> None:
    trace = read(h200 / "seeds" / "naive.json.gz")
    rows = trace.rows(Cat.CPU_OP)
    trace.inputs_of(rows[::-2])
    code, given = trace.inputs_of(rows)
    assert list(dict.fromkeys(code.tolist())) == list(range(len(given)))
