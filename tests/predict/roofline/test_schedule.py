"""Tiles of a causal mask, waves, and whether flash splits the keys."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracehunch.predict.roofline import AttentionDims
from tracehunch.predict.roofline.coefficients import Kernel
from tracehunch.predict.roofline.schedule import Blocks, Pace, larger, makespan, tiled, turned
from tracehunch.predict.roofline.split import flash_splits

TRUTH = Path(__file__).parents[2] / "data" / "truth" / "attention_activities_h200.jsonl.gz"
PACE = Pace(block_us=1.0, tile_us=2.0, lone=1.5, resident=2, sms=100, tail=0.5, quantised=0.5)


@given(
    st.integers(1, 5),
    st.integers(1, 700),
    st.integers(1, 700),
    st.sampled_from([(128, 128), (128, 64), (64, 64), (64, 128), (32, 128), (16, 128)]),
    st.booleans(),
)
def test_tiles_of_a_causal_mask(
    calls: int, rows: int, columns: int, tile: tuple[int, int], lower_right: bool
) -> None:
    kernel = Kernel("test", 64, *tile, 1, "own")
    offset = columns - rows if lower_right else 0
    blocks = tiled(calls, rows, columns, kernel, causal=True, offset=offset)
    strips = -(-rows // tile[0])
    # a strip needs every tile that its last row reaches
    reached = [max((i + 1) * tile[0] + offset, 0) for i in range(strips)]
    needed = [min(-(-columns // tile[1]), -(-keys // tile[1])) for keys in reached]
    assert blocks.count == strips * calls
    assert blocks.mean_tiles == pytest.approx(sum(needed) / strips)
    assert blocks.most_tiles == needed[-1]


@given(
    st.integers(1, 700),
    st.integers(1, 700),
    st.sampled_from([(128, 128), (128, 64), (64, 128), (16, 128), (48, 80)]),
    st.booleans(),
)
def test_tiles_of_a_causal_backward(
    keys: int, queries: int, tile: tuple[int, int], lower_right: bool
) -> None:
    offset = keys - queries if lower_right else 0
    blocks = turned(3, keys, queries, Kernel("test", 64, *tile, 1, "own"), causal=True, offset=offset)
    seeing = [min(max(queries + offset - first, 0), queries) for first in range(0, keys, tile[1])]
    needed = [-(-rows // tile[0]) for rows in seeing]  # the queries that see a strip's first key
    assert blocks.most_tiles == needed[0]
    assert blocks.count == 3 * len(needed)
    assert blocks.mean_tiles == pytest.approx(sum(needed) / len(needed))


def test_tiles_of_absurd_lengths_are_counted_at_once() -> None:
    keys = 64 * 10**12
    blocks = turned(1, keys, keys, Kernel("test", 64, 64, 64, 1, "own"), causal=True)
    assert blocks.mean_tiles == pytest.approx((10**12 + 1) / 2)


def test_one_wave_takes_one_block_and_two_take_two() -> None:
    strict = replace(PACE, lone=1.0, resident=1, quantised=1.0)
    one, full, more = (makespan(Blocks(count, 4, 4), strict) for count in (1, 100, 101))
    assert one == full == pytest.approx(9, rel=0.2)
    assert more == pytest.approx(2 * full)


@given(st.integers(1, 5_000), st.integers(1, 60))
def test_more_blocks_never_take_less(count: int, tiles: int) -> None:
    assert (
        makespan(Blocks(count + 1, tiles, tiles), PACE) >= makespan(Blocks(count, tiles, tiles), PACE) * 0.95
    )
    assert makespan(Blocks(count, tiles, tiles), PACE) > makespan(Blocks(count, tiles / 2, tiles), PACE) * 0.6


def test_many_blocks_take_their_share() -> None:
    assert makespan(Blocks(100_000, 10, 10), PACE) == pytest.approx(100_000 / 100 * 21, rel=0.15)


def test_larger_of_two() -> None:
    assert larger(1, 100) == pytest.approx(100)
    assert larger(100, 1) == pytest.approx(100)
    assert 100 < larger(100, 100) < 130
    assert larger(0, 0) == 0


def test_flash_splits_where_traces_show_it() -> None:
    rows = [json.loads(line) for line in gzip.decompress(TRUTH.read_bytes()).splitlines()][1:]
    flash = [r for r in rows if r["variant"] == "flash" and "activities" in r]
    assert len(flash) == 32
    for row in flash:
        dims = AttentionDims(row["B"], row["H"], row["S"], row["S"], row["D"])
        split = any("splitkv" in name for name, _ in row["activities"])
        assert (flash_splits(dims, 132) > 1) == split, row
