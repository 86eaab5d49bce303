"""Process groups of one kind share a line of bandwidths, others do not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.compare.ranks.summaries import EPOCH, collectives, rank

from tracehunch.compare.ranks import compare
from tracehunch.compare.ranks.group_kinds import group_kinds
from tracehunch.compare.ranks.model import Group

TP = [Group(f"tp{i}", "", (2 * i, 2 * i + 1), 2) for i in range(4)]
DP = [Group(f"dp{i}", "", tuple(range(i, 8, 2)), 4) for i in range(2)]
PP = [Group(f"pp{i}", "", (i, i + 4), 2) for i in range(4)]


def labels(groups):
    kinds = group_kinds(groups)
    return [kinds.labels[code] for code in kinds.code]


def test_by_size_and_stride():
    assert labels([*TP, *DP, *PP]) == [
        *["4 groups of stride 1"] * 4,
        *["2 groups of stride 2"] * 2,
        *["4 groups of stride 4"] * 4,
    ]


def test_by_description_where_it_tells_kinds_apart():
    named = [replace(one, description=f"mesh_tp_{i}") for i, one in enumerate(TP)]
    assert labels([*named, Group("0", "default_pg", (0, 1), 2)]) == [*["mesh_tp"] * 4, "default_pg"]
    assert labels([Group("1", "undefined", (0, 1, 2, 3), 4)]) == ["ranks 0-3"]
    assert labels([Group("1", "", (), 4)]) == [""]
    many = [replace(one, description="abcdefghij"[i] + "x") for i, one in enumerate([*TP, *TP])]
    assert set(labels(many)) == {"8 groups of stride 1"}


@pytest.mark.parametrize("stride", [1, 2])
def test_equal_sizes_in_groups_of_two_kinds_are_two_lines(stride):
    """Four ranks in pairs of neighbours, and in pairs two apart; each of them twice."""
    ends = EPOCH + np.cumsum(np.random.default_rng(0).integers(800_000, 1_200_000, 12))
    pair = {1: lambda r: (r // 2 * 2, r // 2 * 2 + 1), 2: lambda r: (r % 2, r % 2 + 2)}

    def of(number):
        first = collectives(ends, ranks=pair[stride](number), group=f"a{pair[stride](number)[0]}")
        second = Group(f"b{number}", "", pair[3 - stride](number), 2)
        second = replace(second, name=f"b{second.ranks[0]}")
        which = (np.arange(12) % 2).astype(np.int32)
        number_in_group = np.arange(12) // 2
        return replace(first, group=which, groups=(*first.groups, second), number=number_in_group)

    lines = compare([rank(i, of(i), 4) for i in range(4)]).bandwidth
    assert [(one.group, one.groups, one.count) for one in lines] == [
        ("2 groups of stride 1", 2, 12),
        ("2 groups of stride 2", 2, 12),
    ]
