"""Where a rank's time went as a bar of blocks: without colour, and in plain ASCII where need be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tracehunch.report.ranks_rows import has_breakdown, idle_ns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.compare.ranks.model import RankRow

PARTS: Final = ("compute", "exposed communication", "copies", "idle")
_UNICODE: Final = "█▒▪·"
_ASCII: Final = "#=o."


def parts_ns(row: RankRow) -> tuple[int, int, int, int]:
    """Return the time of each of ``PARTS``; they sum to the window."""
    return row.compute_ns, row.exposed_communication_ns, row.copy_ns, idle_ns(row)


def bar(row: RankRow, width: int, *, unicode: bool) -> str:
    """Return so many characters, shared out as the window was; "" where it cannot be told."""
    if not has_breakdown(row):
        return ""
    marks = _UNICODE if unicode else _ASCII
    return "".join(mark * n for mark, n in zip(marks, shared_out(parts_ns(row), width), strict=True))


def legend(*, unicode: bool) -> str:
    """``█ compute, ▒ exposed communication ...``."""
    return ", ".join(
        f"{mark} {part}" for mark, part in zip(_UNICODE if unicode else _ASCII, PARTS, strict=True)
    )


def shared_out(parts: Sequence[int], width: int) -> list[int]:
    """Return whole numbers that sum to ``width``, in proportion: what is left goes to the largest rests."""
    whole = sum(parts)
    if whole <= 0:
        return [0] * len(parts)
    shares = [width * part // whole for part in parts]
    rests = sorted(range(len(parts)), key=lambda at: (-(width * parts[at] % whole), at))
    for at in rests[: width - sum(shares)]:
        shares[at] += 1
    return shares
