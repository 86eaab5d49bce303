"""File names for tests: readable, the same on every machine, and valid on every file system."""

from __future__ import annotations

import hashlib
import re
from pathlib import PurePosixPath
from typing import Final

_UNSAFE: Final = re.compile(r"[^A-Za-z0-9_.=-]+")
_LONGEST: Final = 100
_DIGITS: Final = 8


def path_of(nodeid: str, profile: str = "") -> PurePosixPath:
    """Return a relative path without an extension: ``tests/test_model/test_fwd``.

    ``profile`` names one of several profiles of the test: ``tests/test_model/test_fwd+backward``. A name that
    had to be changed (the id of a parameter, one that is too long, capital letters, which some file systems
    do not tell from small ones) ends in a hash, so that no two tests share a path.
    """
    file, _, rest = nodeid.partition("::")
    folders = [_plain(part) or "up" for part in PurePosixPath(file).with_suffix("").parts]
    name = rest.replace("::", ".") + (f"+{profile}" if profile else "")
    plain = "+".join(_plain(part) for part in name.split("+"))[:_LONGEST] or "test"
    if (*folders, plain) == (*PurePosixPath(file.lower()).with_suffix("").parts, name.lower()):
        return PurePosixPath(*folders, plain)
    digest = hashlib.sha256(f"{nodeid}+{profile}".encode("utf-8", "surrogatepass")).hexdigest()
    return PurePosixPath(*folders, f"{plain}-{digest[:_DIGITS]}")


def slug(name: str) -> str:
    """Return a name in small letters, digits and dashes: ``nvidia-h200``."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "unknown"


def _plain(part: str) -> str:
    return _UNSAFE.sub("-", part).strip("-.")
