"""The collectives of all ranks in one table of columns; process groups mean the same on all of them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from tracehunch.compare.ranks.model import Collectives, Group
from tracehunch.trace.model import ABSENT

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from tracehunch.compare.ranks.jobs import Member
    from tracehunch.compare.ranks.model import RankSummary
    from tracehunch.trace.model import Int64

_POINT_TO_POINT: Final = ("send", "recv")
_TOGETHER: Final = ("reduce", "allreduce", "allgather", "reducescatter", "alltoall", "barrier")
_TAKEN: Final = ("number", "sequence", "in_bytes", "out_bytes", "start_ns", "end_ns", "exposed_ns")


@dataclass(frozen=True, slots=True)
class Table:
    """One row a collective of a rank. ``member`` and ``recording`` count as in ``jobs``, codes are global."""

    member: Int64
    recording: Int64
    row: Int64  # position in the member's collectives, its files one after the other
    kind: Int64  # -> kinds; a send and its receive are one kind
    dtype: Int64  # -> dtypes
    group: Int64  # -> groups; ABSENT: none, or it cannot be told which
    step: Int64
    number: Int64
    sequence: Int64
    in_bytes: Int64
    out_bytes: Int64
    start_ns: Int64
    end_ns: Int64
    exposed_ns: Int64
    kinds: tuple[str, ...]
    dtypes: tuple[str, ...]
    groups: tuple[Group, ...]

    def __len__(self) -> int:
        return self.member.size

    def take(self, chosen: Int64 | NDArray[np.bool_]) -> Self:
        """Return some rows."""
        columns = {
            one.name: getattr(self, one.name)[chosen] for one in fields(self) if one.name not in _NAMES
        }
        return replace(self, **columns)


def plain(kind: str) -> str:
    """``"_allgather_base"`` and ``"allgather_into_tensor_coalesced"`` as ``"allgather"``, and the like."""
    name = kind.lower().replace("_", "").replace("-", "")
    parts = name.split("+")
    if all(part in _POINT_TO_POINT for part in parts):
        return "sendrecv"
    for known in (
        "allreduce",
        "reducescatter",
        "allgather",
        "alltoall",
        "barrier",
        "broadcast",
        "gather",
        "scatter",
    ):
        if all(known in part for part in parts):
            return known
    return "reduce" if all(part.startswith("reduce") for part in parts) else name


def ends_together(kind: str) -> bool:
    """Whether no rank can leave a collective of this (plain) kind before all have joined it."""
    return kind in _TOGETHER and kind != "reduce"


def is_point_to_point(kind: str) -> bool:
    """Whether it is a send with its receive, or a batch of them."""
    return kind == "sendrecv"


def table_of(members: Sequence[Member]) -> Table:
    """Put the collectives of all ranks together."""
    coder = _Coder(members)
    parts: dict[str, list[Any]] = defaultdict(list)
    for at, member in enumerate(members):
        before = 0
        for file, recording in zip(member.files, member.recordings, strict=True):
            one = file.collectives
            size = len(one)
            parts["member"].append(np.full(size, at))
            parts["recording"].append(np.full(size, recording))
            parts["row"].append(np.arange(before, before + size))
            parts["step"].append(one.step)
            for name in _TAKEN:
                parts[name].append(getattr(one, name))
            for name, codes in coder.codes(at, file).items():
                parts[name].append(codes)
            before += size
    columns = {
        name: np.concatenate(found).astype(np.int64) if found else np.zeros(0, dtype=np.int64)
        for name, found in ((name, parts[name]) for name in Table.__slots__ if name not in _NAMES)
    }
    table = Table(**columns, kinds=tuple(coder.kinds), dtypes=tuple(coder.dtypes), groups=coder.groups)
    return table.take(table.end_ns >= table.start_ns)


_NAMES: Final = ("kinds", "dtypes", "groups")


class _Coder:
    """Gives names the same number on every rank."""

    def __init__(self, members: Sequence[Member]) -> None:
        self.kinds: dict[str, int] = {}
        self.dtypes: dict[str, int] = {}
        self._groups, self._code = shared_groups(members)

    @property
    def groups(self) -> tuple[Group, ...]:
        return self._groups

    def codes(self, member: int, file: RankSummary) -> Mapping[str, Int64]:
        one: Collectives = file.collectives
        kinds = [self.kinds.setdefault(plain(kind), len(self.kinds)) for kind in one.kinds]
        dtypes = [self.dtypes.setdefault(dtype, len(self.dtypes)) for dtype in one.dtypes]
        groups = [self._code.get((member, group), ABSENT) for group in one.groups]
        return {
            "kind": _coded(one.kind, kinds),
            "dtype": _coded(one.dtype, dtypes),
            "group": _coded(one.group, groups),
        }


def _coded(column: NDArray[np.int32], codes: Sequence[int]) -> Int64:
    """Translate codes; ABSENT stays what it is."""
    return np.array([*codes, ABSENT], dtype=np.int64)[column]


def shared_groups(members: Sequence[Member]) -> tuple[tuple[Group, ...], Mapping[tuple[int, Group], int]]:
    """Return the process groups of the job, and (member, group as its file has it) -> which one it is.

    Groups are told apart by their ranks, and by name where several have the same ranks. Where no file lists
    the ranks the name has to do, unless more ranks use it than the group has.
    """
    uses = [(at, group, _full(group, file)) for at, m in enumerate(members) for file in m.files
            for group in dict.fromkeys(file.collectives.groups)]  # fmt: skip
    by_ranks: dict[tuple[int, ...], dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    by_name: dict[tuple[str, int | None], set[int]] = defaultdict(set)
    for at, _, full in uses:
        if full.ranks:
            by_ranks[full.ranks][at].add(full.name)
        else:
            by_name[full.name, full.size].add(at)
    one_name = {ranks: _have_one_name_each(names.values()) for ranks, names in by_ranks.items()}
    found: dict[object, int] = {}
    groups: list[Group] = []
    code: dict[tuple[int, Group], int] = {}
    for at, group, full in uses:
        key: object = (full.ranks, "" if one_name.get(full.ranks) else full.name)
        if not full.ranks:
            if full.size is not None and len(by_name[full.name, full.size]) > full.size:
                continue
            key = (full.name, full.size)
        if key not in found:
            found[key] = len(groups)
            groups.append(full)
        code[at, group] = found[key]
    return tuple(groups), code


def _have_one_name_each(names: Any) -> bool:
    return all(len(mine) == 1 for mine in names)


def _full(group: Group, file: RankSummary) -> Group:
    """Add the ranks that a header lists, or that follow from the size."""
    if group.ranks:
        return group
    listed = next((one.ranks for one in file.groups if one.name == group.name and one.ranks), ())
    if not listed and group.size is not None and group.size == file.world_size:
        listed = tuple(range(group.size))
    return Group(group.name, group.description, listed, len(listed) or group.size)
