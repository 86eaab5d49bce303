"""Make a trace of a wanted size by repeating a recorded one: each repetition is a later cycle of its run.

    python benchmarks/big.py OUT.json[.gz] --megabytes 500 [--no-stacks] [--trace TRACE]
    python benchmarks/big.py 'big_{}.json' --megabytes 1 10 100
    python benchmarks/big.py OUT.json[.gz] --repeat 3

TRACE may be compressed (.gz, .xz). Without it the 275 MB trace under TRACEHUNCH_EXTRA_TRACES is taken, or a
recorded one of the tests where that is missing. Times, correlations, flow ids and all other numbers that tie
events together are moved on with each repetition, so that links stay right; steps are counted on. The last
repetition ends with a step where that comes near to the size, else in time: what was still open then is
closed, GPU work launched before it stays whole.
"""

from __future__ import annotations

import argparse
import gzip
import json
import lzma
import os
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

EXTRA = Path(os.environ.get("TRACEHUNCH_EXTRA_TRACES", Path(__file__).parents[2] / "shared" / "traces"))
LARGEST: Final = EXTRA / "h200" / "big_rank0.json.xz"
SMALL: Final = Path(__file__).parents[1] / "tests/data/h200/models/llama_sdpa_train_stack.json.gz"
BASE: Final = LARGEST if LARGEST.is_file() else SMALL

SEPARATOR: Final = ",\n  "
CHUNK: Final = 4000
"""Events that are moved on and written at once."""

NEAR: Final = 0.15
"""How far from the wanted size the end of a step may be to be taken."""

KEYS: Final = (
    "ts",
    "id",
    "correlation",
    "External id",
    "Ev Idx",
    "Record function id",
    "Sequence number",
    "Python id",
    "Python parent id",
)
STEP: Final = "ProfilerStep#"
NUMBER: Final = re.compile(rf'("(?:{"|".join(KEYS)})":\s*|"{STEP})(\d+)')
GPU: Final = frozenset({"kernel", "gpu_memcpy", "gpu_memset"})


@dataclass(frozen=True, slots=True)
class Base:
    """A recorded trace as text: what stands around its events, and the events that can be repeated.

    `at_us` is when an event comes into being: its launch for what the GPU ran, else its start.
    """

    head: str
    tail: str
    once: tuple[str, ...]
    texts: tuple[str, ...]
    at_us: np.ndarray
    end_us: np.ndarray
    on_gpu: np.ndarray
    step_ends_us: tuple[float, ...]
    shift: Mapping[str, int]

    @property
    def sizes(self) -> np.ndarray:
        """Bytes of each event, with what stands between events."""
        return np.array([len(text.encode()) + len(SEPARATOR) for text in self.texts])


def opened(path: Path) -> IO[bytes]:
    """Open a trace for reading, whatever it is compressed with."""
    if path.suffix == ".xz":
        return lzma.open(path)
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def events_of(text: str, start: int) -> Iterator[tuple[str, dict[str, Any], int]]:
    """Yield each event of a list as text and value, and where it ends."""
    decode, gap = json.JSONDecoder().raw_decode, re.compile(r"[\s,]*")
    while True:
        begin = gap.match(text, start).end()  # type: ignore[union-attr]  # matches nothing at least
        if text[begin] == "]":
            return
        event, start = decode(text, begin)
        yield text[begin:start], event, start


def base_of(path: Path, stacks: bool) -> Base:
    """Read a recorded trace; without stacks, its Python functions are left out."""
    with opened(path) as file:
        text = file.read().decode()
    begin = re.search(r'"traceEvents"\s*:\s*\[', text)
    if begin is None:
        sys.exit(f"{path.name} has no traceEvents")
    once, texts, kept, end = [], [], [], begin.end()
    for raw, event, end in events_of(text, begin.end()):  # noqa: B007 - the last end is where the tail starts
        if event.get("ph") in ("M", "i") or event.get("cat") == "Trace":
            once.append(raw)
        elif stacks or event.get("cat") != "python_function":
            texts.append(raw)
            kept.append(event)
    head = text[: begin.end()]
    return Base(
        head=head if stacks else re.sub(r'"with_stack": ?1,\s*', "", head),
        tail=text[end:],
        once=tuple(once),
        texts=tuple(texts),
        at_us=_launched_us(kept),
        end_us=np.array([float(event["ts"]) + float(event.get("dur", 0)) for event in kept]),
        on_gpu=np.array([event.get("cat") in GPU for event in kept]),
        step_ends_us=tuple(float(event["ts"]) + float(event["dur"]) for event in kept if _is_step(event)),
        shift=_shifts(kept),
    )


def _is_step(event: dict[str, Any]) -> bool:
    return event.get("cat") == "user_annotation" and event["name"].startswith(STEP)


def _launched_us(events: Sequence[dict[str, Any]]) -> np.ndarray:
    """Return when each event came into being."""
    launches = {
        event["args"]["correlation"]: float(event["ts"])
        for event in events
        if event.get("cat") not in GPU and "correlation" in event.get("args", ())
    }
    return np.array([launches.get(_launch_id(event), float(event["ts"])) for event in events])


def _launch_id(event: dict[str, Any]) -> int | None:
    if event.get("cat") in GPU:
        return event.get("args", {}).get("correlation")
    return event["id"] if event.get("cat") == "ac2g" else None


def _shifts(events: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return by how much each number grows from one repetition to the next."""
    largest = dict.fromkeys(KEYS, 0)
    steps = [int(event["name"].removeprefix(STEP)) for event in events if _is_step(event)]
    for event in events:
        for values in (event, event.get("args", {})):
            for key in KEYS[1:]:
                largest[key] = max(largest[key], values.get(key) or 0)
    links = max(largest["id"], largest["correlation"])  # flows of launches are named by correlation
    python = max(largest["Python id"], largest["Python parent id"])
    largest |= {"id": links, "correlation": links, "Python id": python, "Python parent id": python}
    first = min(float(event["ts"]) for event in events)
    last = max(float(event["ts"]) + float(event.get("dur", 0)) for event in events)
    shifts = {key: value + 1 for key, value in largest.items()}
    return shifts | {"ts": int(last - first) + 100, STEP: max(steps) - min(steps) + 1 if steps else 0}


def moved(text: str, shift: Mapping[str, int], repetition: int) -> str:
    """Return events as they look that many repetitions later; what is 0 was not set and stays so."""

    def number(match: re.Match[str]) -> str:
        label, value = match[1], int(match[2])
        key = label.strip('": \n')
        return f"{label}{value + repetition * shift[key] if value or key == STEP else value}"

    return NUMBER.sub(number, text) if repetition else text


def cut_us(base: Base, byte_count: float) -> float | None:
    """Return where in time to end a repetition of that many bytes; None for not to begin it."""
    order = np.argsort(base.at_us, kind="stable")
    at_us, grown = base.at_us[order], np.cumsum(base.sizes[order])
    return float(at_us[min(np.searchsorted(grown, byte_count), len(at_us) - 1)]) if byte_count > 0 else None


def plan(base: Base, byte_count: float) -> tuple[int, float | None]:
    """Return how many whole repetitions there are, and where the one after them ends, if any."""
    sizes = base.sizes
    whole, rest = divmod(byte_count, float(sizes.sum()))
    ends: list[float | None] = [None, *base.step_ends_us]
    written = [0 if end is None else int(sizes[base.at_us <= end].sum()) for end in ends]
    off = [abs(count - rest) for count in written]
    best = off.index(min(off))
    if off[best] <= NEAR * byte_count and (whole or ends[best] is not None):
        return int(whole), ends[best]
    return int(whole), cut_us(base, rest)


def texts_until(base: Base, end_us: float) -> Iterator[str]:
    """Yield what had begun by then, closed where it was still open."""
    for index in np.flatnonzero(base.at_us <= end_us):
        text = base.texts[index]
        if base.end_us[index] > end_us and not base.on_gpu[index]:
            open_us = max(end_us - float(base.at_us[index]), 0.001)
            text = re.sub(r'("dur":\s*)[\d.]+', rf"\g<1>{open_us:.3f}", text, count=1)
        yield text


def chunks(texts: Sequence[str]) -> Iterator[str]:
    """Yield events in pieces that are worth a call each."""
    for first in range(0, len(texts), CHUNK):
        yield SEPARATOR.join(texts[first : first + CHUNK])


def pieces(base: Base, whole: int, end_us: float | None) -> Iterator[str]:
    """Yield the text of the trace, piece by piece."""
    yield f"{base.head}\n  "
    for repetition in range(whole):
        for chunk in chunks(base.texts):
            yield moved(chunk, base.shift, repetition) + SEPARATOR
    if end_us is not None:
        for chunk in chunks(tuple(texts_until(base, end_us))):
            yield moved(chunk, base.shift, whole) + SEPARATOR
    # what closes the recording comes as much later, or earlier, as there was more or less to record
    ended_us = base.end_us.max() - base.shift["ts"] if end_us is None else end_us
    later_us = whole * base.shift["ts"] + int(ended_us - base.end_us.max())
    yield SEPARATOR.join(_grown(text, later_us) for text in base.once)
    yield base.tail


def _grown(text: str, later_us: int) -> str:
    if '"Record Window End"' in text:
        return re.sub(r'("ts":\s*)(\d+)', lambda match: f"{match[1]}{int(match[2]) + later_us}", text)
    if '"cat": "Trace"' in text:
        return re.sub(r'("dur":\s*)(\d+)', lambda match: f"{match[1]}{int(match[2]) + later_us}", text)
    return text


def write(path: Path, texts: Iterator[str]) -> int:
    """Write a file as its name says, whole or not at all; return the bytes of JSON."""
    part, total = path.with_name(path.name + ".part"), 0
    packed = partial(gzip.open, compresslevel=6)
    with packed(part, "wb") if path.suffix == ".gz" else part.open("wb") as file:
        for text in texts:
            total += file.write(text.encode())
    part.replace(path)
    return total


def made(path: Path, base: Base, byte_count: float | None, repetitions: int = 1) -> tuple[int, int]:
    """Write a trace of about so many bytes, or of whole repetitions; return its bytes and events."""
    whole, end_us = (repetitions, None) if byte_count is None else plan(base, byte_count)
    events = whole * len(base.texts) + len(base.once)
    if end_us is not None:
        events += int((base.at_us <= end_us).sum())
    return write(path, pieces(base, whole, end_us)), events


def main() -> None:
    """Make the trace that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", help="where to; {} stands for the size or the repetitions")
    size = parser.add_mutually_exclusive_group(required=True)
    size.add_argument("--megabytes", type=float, nargs="+", default=[], help="of JSON, before compression")
    size.add_argument("--repeat", type=int, nargs="+", default=[], metavar="N", help="whole repetitions")
    parser.add_argument("--stacks", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--trace", type=Path, default=BASE)
    given = parser.parse_args()
    if not given.trace.is_file():
        parser.error(f"no trace at {given.trace} (name one, or set TRACEHUNCH_EXTRA_TRACES)")
    base = base_of(given.trace, given.stacks)
    for wanted in [*given.megabytes, *given.repeat]:
        out = Path(given.out.replace("{}", f"{wanted:g}"))
        byte_count = wanted * 1e6 if given.megabytes else None
        total, events = made(out, base, byte_count, 1 if given.megabytes else wanted)
        print(f"{out}: {events:,} events, {total:,} bytes of JSON, {out.stat().st_size:,} on disk")


if __name__ == "__main__":
    main()
