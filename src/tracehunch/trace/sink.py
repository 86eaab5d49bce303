"""Where decompressed text collects, within limits: a small file must not fill the memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.errors import ReadError

if TYPE_CHECKING:
    from tracehunch.trace.scan import Text

MOST_BYTES = 8 << 30
"""No trace that can be worked with is larger."""

_BLANK_BYTES = 64 << 20
_DENSE_BYTES = 256 << 20
_MOST_RATIO = 200  # real traces shrink 10 to 40 times


class Sink:
    """Collects chunks; raises ReadError when they are nothing but white space, or absurdly many."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._data = bytearray()
        self._consumed = 0
        self._blank = True

    @property
    def size(self) -> int:
        """Bytes of text so far."""
        return len(self._data)

    def add(self, chunk: bytes, consumed: int) -> None:
        """Append text that ``consumed`` bytes of the file gave."""
        self._data += chunk
        self._consumed += consumed
        if self._blank:
            self._blank = not chunk.strip()
            if self._blank and self.size > _BLANK_BYTES:
                raise self._refusal("of nothing but white space")
        if self.size > MOST_BYTES:
            raise self._refusal(f"more than the limit of {MOST_BYTES >> 30} GiB")
        if self.size > _DENSE_BYTES and self.size > _MOST_RATIO * self._consumed:
            raise self._refusal(f"{self.size // max(self._consumed, 1)} times the size of the file")

    def cut(self, size: int) -> None:
        """Forget everything from ``size`` on."""
        del self._data[size:]

    def text(self) -> Text:
        """Return what was collected, as a view."""
        return memoryview(self._data)

    def _refusal(self, how: str) -> ReadError:
        return ReadError(
            f"refused: the {self._kind} content expands to over {self.size >> 20:,} MiB",
            f"{how}, which no trace does",
            "unpack it yourself and look at what is inside",
        )
