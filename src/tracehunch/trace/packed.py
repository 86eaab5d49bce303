"""Text that has been read, kept compressed in blocks: any stretch of it can be had again."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Final, TypeAlias

from tracehunch.trace.scan import Text

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK_BYTES: Final = 1 << 20
_LEVEL: Final = 1  # traces shrink ten times even so
_KEPT_BLOCKS: Final = 4


class Packed:
    """Behaves like the bytes that were added to it, as far as slices with a start and an end go."""

    def __init__(self) -> None:
        self._compress, self._decompress = _codec()
        self._blocks: list[bytes] = []
        self._rest = bytearray()  # not yet a block
        self._unpacked: dict[int, bytes] = {}  # the blocks asked for last

    def __len__(self) -> int:
        return len(self._blocks) * BLOCK_BYTES + len(self._rest)

    def add(self, chunk: bytes | bytearray) -> None:
        """Append more text."""
        self._rest += chunk
        whole = len(self._rest) // BLOCK_BYTES * BLOCK_BYTES
        if not whole:
            return
        with memoryview(self._rest) as view:
            for at in range(0, whole, BLOCK_BYTES):
                with view[at : at + BLOCK_BYTES] as block:
                    self._blocks.append(self._compress(block))
        del self._rest[:whole]

    def __getitem__(self, where: slice) -> bytes:
        start, end, _ = where.indices(len(self))
        first, last = start // BLOCK_BYTES, -(-end // BLOCK_BYTES)
        text = b"".join(map(self._block, range(first, last)))
        return text[start - first * BLOCK_BYTES : end - first * BLOCK_BYTES]

    def _block(self, number: int) -> bytes:
        if number == len(self._blocks):
            return bytes(self._rest)
        if number not in self._unpacked:
            if len(self._unpacked) == _KEPT_BLOCKS:
                del self._unpacked[next(iter(self._unpacked))]
            self._unpacked[number] = self._decompress(self._blocks[number])
        return self._unpacked[number]


Kept: TypeAlias = Text | Packed
"""A whole file's text after its events were read: stretches of it are asked for, for arguments."""


def _codec() -> tuple[Callable[[memoryview], bytes], Callable[[bytes], bytes]]:
    """Return what packs and what unpacks a block: isal's, four times as fast, where it is installed."""
    try:
        from isal import isal_zlib  # noqa: PLC0415 - an extra
    except ImportError:
        return lambda block: zlib.compress(block, _LEVEL), zlib.decompress
    return lambda block: bytes(isal_zlib.compress(block, _LEVEL)), isal_zlib.decompress
