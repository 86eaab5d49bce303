"""Which check finds what in which trace, as the Markdown table of docs/findings.md.

    python benchmarks/findings.py [FOLDER ...]

Without folders it takes the recorded H200 traces of the tests and those under TRACEHUNCH_EXTRA_TRACES.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from load import EXTRA

from tracehunch import checks
from tracehunch.judge import examine
from tracehunch.trace import read

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tracehunch.verdict import Checked

H200 = Path(__file__).parents[1] / "tests" / "data" / "h200"
MARKS = {"note": "n", "warning": "W", "error": "E"}
ORDER = ("note", "warning", "error")


def traces(folders: list[Path]) -> Iterator[tuple[str, Path]]:
    """Yield every trace under the folders, with the name that the table gives it."""
    for folder in folders:
        for path in sorted(folder.rglob("*.json.gz")):
            yield f"{path.parent.relative_to(folder.parent)}/{path.name.removesuffix('.json.gz')}", path


def marks(checked: Checked) -> dict[str, str]:
    """Return the mark of each check that has something to say of a trace."""
    found = {one.key: "?" for one in checked.cannot_tell}
    for finding in sorted(checked.findings, key=lambda one: ORDER.index(one.severity)):
        found[finding.id] = MARKS[finding.severity]
    return found


def table(folders: list[Path]) -> str:
    """Return the table: a row a trace, with the ids of its warnings, notes and cannot-tells."""
    lines = ["| trace | warnings | notes | cannot tell |", "|---|---|---|---|"]
    for name, path in traces(folders):
        found = marks(examine(read(path)).checked)
        cells = [
            ", ".join(check for check, mark in found.items() if mark in wanted) or "-"
            for wanted in (("W", "E"), ("n",), ("?",))
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def lists(folders: list[Path]) -> str:
    """Return the same by check: the traces with a warning, and with a note."""
    rows = {name: marks(examine(read(path)).checked) for name, path in traces(folders)}
    lines = ["| finding | warning | note | cannot tell |", "|---|---|---|---|"]
    for check in map(checks.check_id, checks.CHECKS):
        names = [
            ", ".join(name for name, row in rows.items() if row.get(check) in wanted) or "-"
            for wanted in (("W", "E"), ("n",), ("?",))
        ]
        lines.append(f"| {check} | {' | '.join(names)} |")
    return "\n".join(lines)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path)
    parser.add_argument("--by-check", action="store_true", help="a row a check instead of a row a trace")
    given = parser.parse_args()
    folders = given.folders or [one for one in (H200, EXTRA / "public") if one.is_dir()]
    print(lists(folders) if given.by_check else table(folders))
    return 0


if __name__ == "__main__":
    sys.exit(main())
