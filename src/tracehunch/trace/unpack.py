"""Compressed content -> its text, told by magic bytes and never by the name, within limits."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, TypeAlias

from tracehunch.errors import ReadError
from tracehunch.trace.ahead import Ahead
from tracehunch.trace.archive import is_tar, read_tar, read_zip
from tracehunch.trace.coding import GZIP, ZIP, Coding, coding_of, gzip_coding
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

Follow: TypeAlias = "Callable[[], Ahead] | None"
"""What makes a reader of large text that is still coming; None: the text is wanted."""


def unpack(data: Text, notes: Notes) -> Text:
    """Return the text inside; ``data`` itself where nothing is compressed. Raises ReadError."""
    text = unpack_following(data, notes, None)
    assert not isinstance(text, Ahead)  # nobody follows
    return text


def unpack_following(data: Text, notes: Notes, follow: Follow) -> Text | Ahead:
    """As ``unpack``; but of a large sound trace what ``follow`` made has read it, and is returned."""
    for _ in range(_LAYERS):
        unpacked = _unpack_once(data, notes, follow)
        if unpacked is None:
            return data
        if isinstance(unpacked, Ahead):
            return unpacked
        data = unpacked
    raise ReadError(
        f"compressed more than {_LAYERS} times over", "", "unpack the file and give the trace inside"
    )


def _unpack_once(data: Text, notes: Notes, follow: Follow) -> Text | Ahead | None:
    head = bytes(data[:10])
    if head.startswith(GZIP):
        return _gunzip(data, notes, follow)
    if (coding := coding_of(head)) is not None:
        return _stream(data, coding, notes, follow)
    if head.startswith(ZIP):
        return read_zip(data, notes)
    return read_tar(data) if is_tar(data) else None


def _stream(data: Text, coding: Coding, notes: Notes, follow: Follow) -> Text | Ahead:
    """Decompress one stream after the other; what comes before damage is kept, the rest said to be lost."""
    kind = coding.kind
    sink = Sink(kind, follow, len(data))
    pos = 0
    while pos < len(data):
        if pos and at(data, pos) == b"\0" and not bytes(data[pos:]).strip(b"\0"):
            break  # padding
        start, decoder = pos, coding.make()
        while not decoder.eof and pos < len(data):
            chunk = data[pos : pos + _STEP]
            try:
                _pump(decoder, chunk, sink)
            except coding.errors as error:
                if sink.size == 0:
                    raise ReadError(
                        f"damaged {kind} stream at byte {pos:,}", str(error), "copy the file again"
                    ) from None
                _say_damaged(kind, pos, sink, notes, str(error)) if start == 0 else _say_garbage(
                    kind, start, notes
                )
                return sink.result()
            pos += len(chunk)
        if not decoder.eof:
            _say_truncated(kind, len(data), sink, notes)
            break
        pos -= len(decoder.unused_data)
    return sink.result()


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


def _gunzip(data: Text, notes: Notes, follow: Follow) -> Text | Ahead:
    coding = gzip_coding()
    sink = Sink("gzip", follow, len(data))
    pos = 0
    while pos < len(data):
        if bytes(data[pos : pos + 2]) != GZIP:
            if bytes(data[pos:]).strip(b"\0"):
                _say_garbage("gzip", pos, notes)
            break
        start, kept, decoder = pos, sink.size, coding.make()
        try:
            while not decoder.eof and pos < len(data):
                chunk = data[pos : pos + _CHUNK]
                sink.add(decoder.decompress(chunk), len(chunk))
                pos += len(chunk)
        except coding.errors:
            sink.cut(kept)
            return _gunzip_carefully(data, start, sink, notes)
        if not decoder.eof:
            sink.cut(kept)
            return _gunzip_carefully(data, start, sink, notes)
        pos -= len(decoder.unused_data)
    return sink.result()


def _gunzip_carefully(data: Text, start: int, sink: Sink, notes: Notes) -> Text | Ahead:
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
        return sink.result()
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
        if bytes(rest[:2]) == GZIP:
            sink.add(bytes(unpack(rest, notes)), len(rest))
    return sink.result()


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
