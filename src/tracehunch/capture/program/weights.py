"""Weights in files: safetensors are opened for names, shapes and data types; no number is read.

The file starts with the length of its header (8 bytes, little endian) and the header in JSON. With values
the numbers are read, by the library itself.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self
from unittest.mock import patch

from tracehunch.capture.program.replacing import replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tracehunch.capture.program.known import Known

_DTYPES: Final = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "I64": "int64", "I32": "int32",
    "I16": "int16", "I8": "int8", "U8": "uint8", "BOOL": "bool", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "C64": "complex64",
}  # fmt: skip


@contextmanager
def weights(torch: Any, known: Known) -> Iterator[None]:
    """Open safetensors without reading numbers, and run what goes to a pool of threads at once.

    Other threads know nothing of the recording.
    """
    safetensors = import_module("safetensors") if find_spec("safetensors") else None
    with ExitStack() as stack:
        stack.enter_context(patch.object(ThreadPoolExecutor, "submit", _at_once))
        if safetensors is not None:
            original = safetensors.safe_open
            for module in list(sys.modules.values()):
                if getattr(module, "__dict__", {}).get("safe_open") is original:
                    stack.enter_context(replaced(module, "safe_open", _opener(torch, known, original)))
        yield


def _at_once(_: Any, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
    done: Future[Any] = Future()
    try:
        done.set_result(work(*args, **kwargs))
    except Exception as error:  # noqa: BLE001  # whatever it is, the one who waits gets it
        done.set_exception(error)
    return done


def _opener(torch: Any, known: Known, original: Any) -> Callable[..., _Opened]:
    def safe_open(filename: Any, framework: str = "pt", device: Any = "cpu", **_: Any) -> _Opened:
        file = None
        if known.everything:
            file = known.aside(lambda: original(filename, framework=framework, device="cpu"))
        return _Opened(torch, known, Path(filename), device, file)

    return safe_open


class _Opened:
    """What `safetensors.safe_open` returns."""

    def __init__(self, torch: Any, known: Known, path: Path, device: Any, file: Any) -> None:
        self._torch, self._known, self._file = torch, known, file
        self._device = torch.device("cuda", device) if isinstance(device, int) else torch.device(device)
        with path.open("rb") as opened:
            header = json.loads(opened.read(int.from_bytes(opened.read(8), "little")))
        self._metadata = header.pop("__metadata__", None)
        self._entries: dict[str, Any] = header

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def metadata(self) -> Any:
        return self._metadata

    def keys(self) -> list[str]:
        return list(self._entries)

    offset_keys = keys

    def get_slice(self, name: str) -> _Slice:
        return _Slice(self, name, self._entries[name])

    def get_tensors(self) -> dict[str, Any]:
        return {name: self.get_tensor(name) for name in self.keys()}

    def get_tensor(self, name: str) -> Any:
        entry = self._entries[name]
        dtype = getattr(self._torch, _DTYPES[entry["dtype"]])
        made = self._torch.empty(entry["shape"], dtype=dtype, device=self._device)
        if self._file is not None:
            real = self._known.aside(lambda: self._file.get_tensor(name))
            if real is not None:
                self._known.keep(made, real)
        return made


class _Slice:
    """A tensor of the file of which a part may be taken."""

    def __init__(self, owner: _Opened, name: str, entry: dict[str, Any]) -> None:
        self._owner, self._name, self._entry = owner, name, entry

    def get_shape(self) -> list[int]:
        return list(self._entry["shape"])

    def get_dtype(self) -> str:
        return str(self._entry["dtype"])

    def __getitem__(self, part: Any) -> Any:
        return self._owner.get_tensor(self._name)[part]
