"""Compressed content -> its text, told by magic bytes and never by the name, within limits."""

from __future__ import annotations

import bz2
import lzma
import zlib
from typing import TYPE_CHECKING, Any

from tracehunch.errors import ReadError
from tracehunch.trace.archive import is_tar, read_tar, read_zip
from tracehunch.trace.scan import at
from tracehunch.trace.sink import Sink

if TYPE_CHECKING:
    from collections.abc import Callable

    from tracehunch.trace.notes import Notes
    from tracehunch.trace.scan import Text

_CHUNK = 1 << 16
_TRAILER_BYTES = 8  # gzip's checksum and length
_STEP = 1 << 10  # for formats in which a few bytes may hold megabytes
_MOST_AT_ONCE = 1 << 24
_LAYERS = 4
_GZIP, _XZ, _BZIP2, _ZSTD = b"\x1f\x8b", b"\xfd7zXZ\0", b"BZh", b"\x28\xb5\x2f\xfd"
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")


def unpack(data: Text, notes: Notes) -> Text:
    """Return the text inside; ``data`` itself where nothing is compressed. Raises ReadError."""
    for _ in range(_LAYERS):
        unpacked = _unpack_once(data, notes)
        if unpacked is None:
            return data
        data = unpacked
    raise ReadError(
        f"compressed more than {_LAYERS} times over", "", "unpack the file and give the trace inside"
    )


def _unpack_once(data: Text, notes: Notes) -> Text | None:
    head = bytes(data[:6])
    if head.startswith(_GZIP):
        return _gunzip(data, notes)
    if head.startswith(_XZ):
        return _stream(data, "xz", lzma.LZMADecompressor, (lzma.LZMAError, EOFError), notes)
    if head.startswith(_BZIP2) and bytes(data[4:10]) in (b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"):
        return _stream(data, "bzip2", bz2.BZ2Decompressor, (OSError, EOFError), notes)
    if head.startswith(_ZSTD):
        make, errors = _zstd()
        return _stream(data, "zstd", make, errors, notes)
    if head.startswith(_ZIP):
        return read_zip(data, notes)
    return read_tar(data) if is_tar(data) else None


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


def _stream(
    data: Text, kind: str, make: Callable[[], Any], errors: tuple[type[Exception], ...], notes: Notes
) -> Text:
    """Decompress one stream after the other; what comes before damage is kept, the rest said to be lost."""
    sink = Sink(kind)
    pos = 0
    while pos < len(data):
        if pos and at(data, pos) == b"\0" and not bytes(data[pos:]).strip(b"\0"):
            break  # padding
        start, decoder = pos, make()
        while not decoder.eof and pos < len(data):
            chunk = data[pos : pos + _STEP]
            try:
                _pump(decoder, chunk, sink)
            except errors as error:
                if sink.size == 0:
                    raise ReadError(
                        f"damaged {kind} stream at byte {pos:,}", str(error), "copy the file again"
                    ) from None
                _say_damaged(kind, pos, sink, notes, str(error)) if start == 0 else _say_garbage(
                    kind, start, notes
                )
                return sink.text()
            pos += len(chunk)
        if not decoder.eof:
            _say_truncated(kind, len(data), sink, notes)
            break
        pos -= len(decoder.unused_data)
    return sink.text()


def _pump(decoder: Any, chunk: Text, sink: Sink) -> None:
    """Decompress a chunk, a bounded part at a time where the decoder can be bounded."""
    if not hasattr(decoder, "needs_input"):
        sink.add(decoder.decompress(chunk), len(chunk))
        return
    sink.add(decoder.decompress(chunk, _MOST_AT_ONCE), len(chunk))
    while not decoder.eof and not decoder.needs_input:
        sink.add(decoder.decompress(b"", _MOST_AT_ONCE), 0)


def _say_truncated(kind: str, size: int, sink: Sink, notes: Notes) -> None:
    if sink.size == 0:
        raise ReadError(
            f"truncated {kind} stream", f"it stops at byte {size:,}, before any text", "copy the file again"
        )
    notes.say(
        "truncated-compression",
        f"the {kind} stream is truncated (it stops at byte {size:,}): {sink.size:,} bytes of text are used",
        lossy=True,
    )


def _say_damaged(kind: str, pos: int, sink: Sink, notes: Notes, why: str) -> None:
    notes.say(
        "damaged-compression",
        f"the {kind} stream is damaged near byte {pos:,} ({why}): only {sink.size:,} bytes of text before it "
        "are used, and the last of them may be corrupt too",
        lossy=True,
    )


def _say_garbage(kind: str, pos: int, notes: Notes) -> None:
    notes.say(
        "trailing-bytes",
        f"bytes that are no {kind} follow the stream from byte {pos:,}: ignored",
        lossy=False,
    )


def _gunzip(data: Text, notes: Notes) -> Text:
    make, errors = _inflater()
    sink = Sink("gzip")
    pos = 0
    while pos < len(data):
        if bytes(data[pos : pos + 2]) != _GZIP:
            if bytes(data[pos:]).strip(b"\0"):
                _say_garbage("gzip", pos, notes)
            break
        start, kept, decoder = pos, sink.size, make()
        try:
            while not decoder.eof and pos < len(data):
                chunk = data[pos : pos + _CHUNK]
                sink.add(decoder.decompress(chunk), len(chunk))
                pos += len(chunk)
        except errors:
            sink.cut(kept)
            return _gunzip_carefully(data, start, sink, notes)
        if not decoder.eof:
            sink.cut(kept)
            return _gunzip_carefully(data, start, sink, notes)
        pos -= len(decoder.unused_data)
    return sink.text()


def _inflater() -> tuple[Callable[[], Any], tuple[type[Exception], ...]]:
    """Return what makes a gzip decompressor: isal's, several times as fast, where it is installed."""
    try:
        from isal import isal_zlib  # noqa: PLC0415 - an extra
    except ImportError:
        return lambda: zlib.decompressobj(31), (zlib.error,)
    error: Any = isal_zlib.error  # typed as an exception, not as a class of them
    return lambda: isal_zlib.decompressobj(31), (error, zlib.error)


def _gunzip_carefully(data: Text, start: int, sink: Sink, notes: Notes) -> Text:
    """Read a damaged or cut member: every byte of text that comes out before the trouble."""
    decoder = zlib.decompressobj(-15)
    pos = _deflate_start(data, start)
    crc, before = 0, sink.size
    try:
        while not decoder.eof and pos < len(data):
            text = decoder.decompress(data[pos : pos + 64])
            crc = zlib.crc32(text, crc)
            sink.add(text, 64)
            pos += 64
        sink.add(decoder.flush(), 0)
    except zlib.error as error:
        if sink.size == before == 0:
            raise ReadError(
                f"damaged gzip stream at byte {pos:,}", str(error), "copy the file again"
            ) from None
        _say_damaged("gzip", pos, sink, notes, str(error))
        return sink.text()
    pos = min(pos, len(data)) - len(decoder.unused_data)
    trailer = bytes(data[pos : pos + _TRAILER_BYTES])
    if not decoder.eof or len(trailer) < _TRAILER_BYTES:
        _say_truncated("gzip", len(data), sink, notes)
    elif (
        int.from_bytes(trailer[:4], "little") != crc
        or int.from_bytes(trailer[4:], "little") != (sink.size - before) % 2**32
    ):
        notes.say(
            "bad-checksum",
            f"the gzip checksum (CRC at byte {pos:,}) does not match: the content may be corrupt",
            lossy=True,
        )
        rest = data[pos + _TRAILER_BYTES :]
        if bytes(rest[:2]) == _GZIP:
            sink.add(bytes(_gunzip(rest, notes)), len(rest))
    return sink.text()


def _deflate_start(data: Text, start: int) -> int:
    """Where the compressed data begins behind a gzip header (RFC 1952)."""
    flags, pos = bytes(data[start + 3 : start + 4]), start + 10
    flag = flags[0] if flags else 0
    if flag & 4:  # extra field
        pos += 2 + int.from_bytes(data[pos : pos + 2], "little")
    for bit in (8, 16):  # name, comment: up to a zero byte
        if flag & bit:
            end = bytes(data[pos : pos + 65536]).find(b"\0")
            pos += end + 1 if end >= 0 else 0
    return pos + 2 if flag & 2 else pos
