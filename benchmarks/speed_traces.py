"""The traces that are timed, made once by `big.py` and kept in a folder."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

HERE: Final = Path(__file__).parent
AFTER: Final = 0.9
"""How large the second trace of a diff is, of the first: fewer steps of the same program."""


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """A trace by its nominal size, MB of JSON."""

    megabytes: float
    stacks: bool = True
    packed: bool = False

    @property
    def name(self) -> str:
        """Its file's name."""
        return f"{self._stem}_{self.megabytes:g}.json" + (".gz" if self.packed else "")

    @property
    def _stem(self) -> str:
        return "with_stacks" if self.stacks else "no_stacks"

    @property
    def words(self) -> str:
        """What tables call it."""
        size = f"{self.megabytes / 1000:g} GB" if self.megabytes >= 1000 else f"{self.megabytes:g} MB"
        return f"{size} {'.json.gz' if self.packed else '.json'}, {'with' if self.stacks else 'no'} stacks"


def make(folder: Path, wanted: Iterable[Wanted], base: Path | None) -> None:
    """Make the traces that are not there yet; a process of its own reads the recorded one."""
    missing = [trace for trace in sorted(set(wanted)) if not (folder / trace.name).is_file()]
    for stacks in (True, False):
        # very large ones are only made packed, without the plain file beside
        direct = sorted({t.megabytes for t in missing if t.stacks == stacks and t.megabytes >= 1000})
        plain = sorted({t.megabytes for t in missing if t.stacks == stacks} - set(direct))
        _big(folder, plain, stacks, ".json", base)
        _big(folder, direct, stacks, ".json.gz", base)
    for trace in missing:
        if trace.packed and not (folder / trace.name).is_file():
            _pack(folder / Wanted(trace.megabytes, trace.stacks).name, folder / trace.name)


def _big(folder: Path, sizes: list[float], stacks: bool, suffix: str, base: Path | None) -> None:
    sizes = [size for size in sizes if not (folder / (Wanted(size, stacks).name + suffix[5:])).is_file()]
    if not sizes:
        return
    out = folder / (f"{'with' if stacks else 'no'}_stacks_{{}}{suffix}")
    command = [sys.executable, str(HERE / "big.py"), str(out), "--megabytes", *map(str, sizes)]
    command += ["--stacks" if stacks else "--no-stacks", *(["--trace", str(base)] if base else [])]
    subprocess.run(command, check=True)


def _pack(plain: Path, packed: Path) -> None:
    part = packed.with_name(packed.name + ".part")
    with plain.open("rb") as source, gzip.open(part, "wb", compresslevel=6) as target:
        shutil.copyfileobj(source, target, 1 << 22)
    part.replace(packed)


# a job of many ranks


def make_ranks(folder: Path, recorded: list[Path], count: int, megabytes: float) -> None:
    """Make a job of that many ranks from recorded ones: rank 0 from the first, the others from the last."""
    if folder.is_dir():
        return
    part = folder.with_name(folder.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    for rank in range(count):
        source = recorded[0] if rank == 0 else recorded[-1]
        plain = part / f"rank{rank}.json"
        command = [sys.executable, str(HERE / "big.py"), str(plain), "--megabytes", str(megabytes)]
        subprocess.run([*command, "--trace", str(source)], check=True, stdout=subprocess.DEVNULL)
        plain.write_text(relabelled(plain.read_text(), rank, count))
    part.replace(folder)


def relabelled(text: str, rank: int, count: int) -> str:
    """Return a trace's text as that of another rank of a larger job with one process group."""
    members = ", ".join(map(str, range(count)))
    for pattern, value in (
        (r'("(?:rank|Rank)": )\d+', str(rank)),
        (r'("(?:world_size|pg_size|Group size)": )\d+', str(count)),
        (r'("ranks": )\[[\d, ]*\]', f"[{members}]"),
        (r'("Process Group Ranks": )"\[[\d, ]*\]"', f'"[{members}]"'),
    ):
        text = re.sub(pattern, rf"\g<1>{value}", text)
    return text
