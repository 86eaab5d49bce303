"""zip and tar files that hold one trace, read in memory: nothing is ever written to a disk."""

from __future__ import annotations

import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from typing import IO, TYPE_CHECKING

from tracehunch.errors import ReadError
from tracehunch.trace.foreign import GIVE_TRACE
from tracehunch.trace.sink import Sink
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tracehunch.trace.notes import Notes
    from tracehunch.trace.scan import Text

_CHUNK = 1 << 16
_SHOWN = 4
_ENCRYPTED = 1  # bit of a member's flags
_TAR_MAGIC = slice(257, 262)
_UNPACK = "unpack it and give one of its files"
_ZIP_ERRORS = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
    LookupError,
)
"""What zipfile lets through from damaged files."""


def is_tar(data: Text) -> bool:
    """Whether this is a tar archive."""
    return bytes(data[_TAR_MAGIC]) == b"ustar"


def read_zip(data: Text, notes: Notes) -> Text:
    """Return the one trace in a zip."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except _ZIP_ERRORS as error:
        raise ReadError(
            "this zip is damaged or truncated", printable(str(error)), "download it again"
        ) from None
    with archive:
        members = {m.filename: m for m in archive.infolist() if not m.is_dir()}
        if any(name.split("/")[-1] == "data.pkl" for name in members):
            raise ReadError("not a trace: this zip is a torch.save file (a pickle)", "", GIVE_TRACE)
        if members and all(name.lower().endswith(".npy") for name in members):
            raise ReadError("not a trace: this zip is a file of NumPy arrays (.npz)", "", GIVE_TRACE)
        member = members[_only(list(members), "zip")]
        return _read_member(archive, member, notes)


def _read_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, notes: Notes) -> Text:
    if member.flag_bits & _ENCRYPTED:
        raise ReadError(
            "this zip is encrypted (password)", "", "unpack it with its password and give the trace inside"
        )
    sink = Sink("zip")
    try:
        with archive.open(member) as stream:
            _copy(stream, sink, member.compress_size, member.file_size)
    except RuntimeError as error:  # a method that Python does not know
        raise ReadError("this zip cannot be read", printable(str(error)), _UNPACK) from None
    except _ZIP_ERRORS as error:
        if sink.size == 0:
            raise ReadError("this zip is damaged", printable(str(error)), "download it again") from None
        notes.say(
            "damaged-compression",
            f"the zip is corrupt: {printable(str(error))}; what came out is used",
            lossy=True,
        )
    return sink.text()


def read_tar(data: Text) -> Text:
    """Return the one trace in a tar."""
    sink = Sink("tar")
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            members = {m.name: m for m in archive.getmembers() if m.isfile()}
            stream = archive.extractfile(members[_only(list(members), "tar archive")])
            if stream is not None:
                _copy(stream, sink, len(data), len(data))
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise ReadError("this tar archive is damaged", printable(str(error)), _UNPACK) from None
    return sink.text()


def _copy(stream: IO[bytes], sink: Sink, packed: int, unpacked: int) -> None:
    while chunk := stream.read(_CHUNK):
        sink.add(chunk, max(len(chunk) * packed // max(unpacked, 1), 1))


def _only(names: Sequence[str], kind: str) -> str:
    """Pick the one member that may be a trace."""
    plain = [n for n in names if not n.startswith("__MACOSX/") and not n.split("/")[-1].startswith(".")]
    traces = [n for n in plain if ".json" in n.lower()] or plain
    if len(traces) == 1:
        return traces[0]
    if not traces:
        raise ReadError(f"this {kind} is empty", "it has no members", "give the trace itself")
    shown = ", ".join(printable(n, 60) for n in traces[:_SHOWN]) + (" ..." if len(traces) > _SHOWN else "")
    raise ReadError(f"this {kind} has {len(traces)} members that may be traces", shown, _UNPACK)
