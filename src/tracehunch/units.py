"""The only place that turns numbers, and text from traces, into something to print.

Numbers keep about four significant digits, enough to compare and few enough to read. They are plain ASCII
(``us``, as PyTorch's own table writes it), so that a report is the same in every terminal, log and diff.
"""

from __future__ import annotations

import math
import re
import unicodedata
from hashlib import sha256
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

NAME_LIMIT: Final = 1_600
"""Characters of a name that any output shows; kernel names of 64 KB exist."""

_TIME_STEPS: Final = ((1e6, "s"), (1e3, "ms"))
_BYTE_STEPS: Final = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_RATE_STEPS: Final = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


def time_us(us: float) -> str:
    """Microseconds as ``0.42 us``, ``127.6 us``, ``1.064 ms``, ``2.310 s``."""
    for step, unit in _TIME_STEPS:
        if abs(us) >= step * 0.99995:  # what would round to 1000 of the smaller unit
            return f"{_digits(us / step)} {unit}"
    return f"{_digits(us, 3 if abs(us) < 10 else 4)} us"  # files hold nanoseconds


_TABLE_STEPS: Final = ((1.0, "us"), (1e3, "ms"), (1e6, "s"))
_TABLE_LARGEST: Final = 1e4
"""How large a number a column of times holds before its unit changes."""


def time_column(times_us: Sequence[float | None]) -> list[str]:
    """Microseconds of one column in one unit, that of the largest: ``1,063.5 us``; "" for None.

    Where the unit would leave nothing of the smallest, each stands in its own.
    """
    known = [abs(us) for us in times_us if us]
    largest, smallest = max(known, default=0.0), min(known, default=0.0)
    step, unit = next((one for one in _TABLE_STEPS if largest / one[0] < _TABLE_LARGEST), _TABLE_STEPS[-1])
    if smallest and smallest / step < 0.01:  # a digit of three decimals, hence nothing to read
        return ["" if us is None else time_us(us) for us in times_us]
    decimals = 1 if smallest / step >= 10 else 2 if smallest / step >= 0.1 else 3
    decimals = 1 if unit == "us" and largest >= 100 else decimals  # nanoseconds say nothing there
    return ["" if us is None else f"{us / step:,.{decimals}f} {unit}" for us in times_us]


def time_range_us(low: float, high: float) -> str:
    """Two times in one unit, as ``1.063-1.067 ms``; one time where both read the same."""
    first, last = time_us(low), time_us(high)
    if first == last:
        return first
    number, unit = first.split(" ")
    return f"{number}-{last}" if last.endswith(f" {unit}") else f"{first} - {last}"


def size(n_bytes: float) -> str:
    """Bytes as ``512 B``, ``48 KiB``, ``1.5 GiB`` (powers of 1024)."""
    for step, unit in _BYTE_STEPS:
        if abs(n_bytes) >= step:
            return f"{_short(n_bytes / step)} {unit}"
    return f"{_short(n_bytes)} B"


_SIZE: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?|\.[0-9]+)\s*([kmgt]?)(i?)b?", re.IGNORECASE)


def bytes_of(text: str) -> int | None:
    """Return the bytes that a size as people write it means: ``4GB``, ``1.5 GiB``, ``512m``; None: no size.

    With an ``i`` the units are powers of 1024, else of 1000.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        return None
    power = "kmgt".find(match[2].lower()) + 1 if match[2] else 0
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power)


def bandwidth(bytes_per_second: float) -> str:
    """Return a transfer rate as ``3.2 GB/s`` (powers of 1000, as vendors state bandwidth)."""
    return f"{_scaled(bytes_per_second)}B/s"


def flop_count(flops: float) -> str:
    """Return a number of floating-point operations as ``17.2 GFLOP``."""
    return f"{_scaled(flops)}FLOP"


def flop_rate(flops_per_second: float) -> str:
    """Return an arithmetic rate as ``412 TFLOP/s``."""
    return f"{_scaled(flops_per_second)}FLOP/s"


def percent(value: float) -> str:
    """Return a percentage (0 to 100) as ``62%``, ``8.4%``, ``<0.1%``; 0% and 100% are exact."""
    if 0 < value < 0.1:  # below the smallest step that is printed
        return "<0.1%"
    if 99.9 < value < 100:  # above the largest
        return ">99.9%"
    return f"{_trim(f'{value:.1f}')}%" if abs(value) < 10 or value > 99 else f"{value:.0f}%"


def share(part: float, whole: float) -> str:
    """``part`` of ``whole`` as a percentage; ``-`` where there is no whole."""
    return percent(100 * part / whole) if whole > 0 else "-"


def count(n: float) -> str:
    """Return a count as ``1,265``; means of counts keep a decimal."""
    return f"{n:,}" if isinstance(n, int) else f"{int(n):,}" if float(n).is_integer() else f"{n:,.1f}"


def plural(n: float, noun: str, nouns: str = "") -> str:
    """``1 kernel``, ``2 kernels``, ``3 copies`` (with ``nouns`` where an s is not enough)."""
    return f"{count(n)} {noun if n == 1 else nouns or noun + 's'}"


def ratio(value: float) -> str:
    """How many times as much: ``45.3x``, ``2.46x``, ``120x``."""
    return f"{_digits(value, 3)}x"


def table_time_us(us: float) -> str:
    """Microseconds as the profiler's own table writes them: ``127.572us``, ``3.220ms``, ``1.250s``."""
    if us >= 1e6:  # a second
        return f"{us / 1e6:.3f}s"
    return f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"  # a millisecond


def table_percent(value: float) -> str:
    """Return a percentage as the profiler's own table writes it: ``31.77%``."""
    return f"{value:.2f}%"


def join(parts: Sequence[str], last: str = "and") -> str:
    """Return ``a``, ``a and b``, ``a, b and c``."""
    if len(parts) < 2:  # nothing to join
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last} {parts[-1]}"


def printable(text: str, limit: int = NAME_LIMIT) -> str:
    r"""Text from a trace made harmless for any output, on one line.

    Control characters, the escapes of terminals, characters that reorder text and lone surrogates become
    visible escapes (``\x1b``); what is longer than ``limit`` is cut, with its length and a digest that keeps
    names apart.
    """
    if len(text) > limit:
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        text = f"{text[:limit]}... ({len(text)} characters, sha256 {digest})"
    if text.isascii() and text.isprintable():
        return text
    return _UNSAFE.sub(_escaped, text)


def shorten(text: str, width: int) -> str:
    """Text cut to ``width`` terminal columns, its end replaced by ``...``."""
    if cells(text) <= width:
        return text
    kept, used = [], 0
    for character in text:
        used += cells(character)
        if used > width - 3:
            break
        kept.append(character)
    return "".join(kept) + "..."[: max(width, 0)]


def elide(text: str, width: int) -> str:
    """Text cut to ``width`` terminal columns, its middle replaced by ``...``: both ends tell names apart."""
    if cells(text) <= width or not text.isascii():
        return shorten(text, width)
    tail = (width - 3) // 2
    return f"{text[: width - 3 - tail]}...{text[len(text) - tail :]}"


def cells(text: str) -> int:
    """Terminal columns that a text takes: two for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text
    )


_UNSAFE: Final = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad"  # C0 and C1 controls, soft hyphen
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # invisible, or reorder text
    "\ud800-\udfff"  # halves of surrogate pairs cannot be encoded
    "\U000e0000-\U000e0fff]"  # tags: invisible text
)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _digits(value: float, significant: int = 4) -> str:
    """Return fixed notation with so many significant digits, never fewer than the digits before the point."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    before = math.floor(math.log10(abs(value))) + 1
    return f"{value:.{min(max(significant - before, 0), 3)}f}"


def _short(value: float) -> str:
    return _trim(f"{value:.1f}")


def _trim(number: str) -> str:
    return number.removesuffix(".0")


def _scaled(value: float) -> str:
    for step, prefix in _RATE_STEPS:
        if abs(value) >= step:
            return f"{_digits(value / step, 3)} {prefix}"
    return f"{_digits(value, 3)} "
