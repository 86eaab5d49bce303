"""Compressed streams, told by their first bytes, and what decompresses them."""

from __future__ import annotations

import bz2
import lzma
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tracehunch.errors import ReadError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.trace.scan import Text

GZIP: Final = b"\x1f\x8b"
ZIP: Final = (b"PK\x03\x04", b"PK\x05\x06")
_XZ, _BZIP2, _ZSTD = b"\xfd7zXZ\0", b"BZh", b"\x28\xb5\x2f\xfd"
_BZIP2_BLOCKS = (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90")
_STEP = 1 << 10  # there are formats in which a few bytes hold megabytes


@dataclass(frozen=True, slots=True)
class Coding:
    """How a compressed stream is read: ``make`` gives a decompressor, which raises ``errors``."""

    kind: str
    make: Callable[[], Any]
    errors: tuple[type[Exception], ...]


def gzip_coding() -> Coding:
    """Return gzip's: isal's, several times as fast, where it is installed."""
    try:
        from isal import isal_zlib  # noqa: PLC0415 - an extra
    except ImportError:
        return Coding("gzip", lambda: zlib.decompressobj(31), (zlib.error,))
    error: Any = isal_zlib.error  # typed as an exception, not as a class of them
    return Coding("gzip", lambda: isal_zlib.decompressobj(31), (error, zlib.error))


def coding_of(head: bytes) -> Coding | None:
    """Return how a stream other than gzip's is read, by its first ten bytes; None for all else."""
    if head.startswith(_XZ):
        return Coding("xz", lzma.LZMADecompressor, (lzma.LZMAError, EOFError))
    if head.startswith(_BZIP2) and head[4:10] in _BZIP2_BLOCKS:
        return Coding("bzip2", bz2.BZ2Decompressor, (OSError, EOFError))
    return Coding("zstd", *_zstd()) if head.startswith(_ZSTD) else None


def _zstd() -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """Return what makes a decompressor: the standard library's from Python 3.14 on, else zstandard."""
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415 - 3.14 on
    except ImportError:
        pass
    else:
        return zstd.ZstdDecompressor, (zstd.ZstdError, EOFError)
    try:
        import zstandard  # noqa: PLC0415 - an extra
    except ImportError:
        raise ReadError(
            "this is zstd-compressed, and no zstd decoder is installed",
            "Python has one from 3.14 on",
            "pip install zstandard, or unpack it with: zstd -d FILE",
        ) from None
    return lambda: zstandard.ZstdDecompressor().decompressobj(), (zstandard.ZstdError, EOFError)


def beginning(data: Text, n_bytes: int) -> tuple[bytes, int]:
    """Return about ``n_bytes`` of text from a file's beginning, and how many bytes of the file gave it.

    What is no stream counts as text; of damaged ones comes what there is, of a zip nothing.
    """
    head = bytes(data[:10])
    coding = gzip_coding() if head.startswith(GZIP) else coding_of(head)
    if coding is None:
        text = b"" if head.startswith(ZIP) else bytes(data[:n_bytes])
        return text, len(text)
    decoder, found, pos = coding.make(), bytearray(), 0
    try:
        while pos < len(data) and len(found) < n_bytes and not decoder.eof:
            found += decoder.decompress(data[pos : pos + _STEP])
            pos += _STEP
    except coding.errors:
        pass
    return bytes(found), min(pos, len(data))
