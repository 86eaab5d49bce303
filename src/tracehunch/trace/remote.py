"""URLs of traces: ``s3://``, ``gs://``, ``hf://``, ``https://`` ..., read by fsspec, with a time limit."""

from __future__ import annotations

import mmap
import os
import queue
import re
import tempfile
import threading
from typing import TYPE_CHECKING, Any, BinaryIO, Final, TypeVar

from tracehunch.errors import ReadError
from tracehunch.trace.scratch import open_scratch
from tracehunch.trace.sink import MOST_BYTES
from tracehunch.trace.text import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tracehunch.trace.scan import Text

Answer = TypeVar("Answer")

PATIENCE_S = 30.0
"""A server that says nothing for so long does not answer."""

_CHUNK: Final = 1 << 20
_AT_ONCE: Final = 8  # small servers drop more connections than they can queue
_DENIED: Final = (401, 403)
_NONE: Final = 404
_URL: Final = re.compile(r"[a-z][a-z0-9+.\-]+(?:://|::)", re.IGNORECASE)
_LOGIN: Final = re.compile(r"(?<=://)[^/@\s]*@")
_QUERY: Final = re.compile(r"(https?://[^\s?#]*)[?#][^\s'\")]*", re.IGNORECASE)
_SHOWN: Final = 300


def is_url(text: str) -> bool:
    """Whether this names something elsewhere, as fsspec understands it; a drive's letter does not."""
    return _URL.match(text) is not None


def local_path(url: str) -> str | None:
    """Return the path of a ``file://`` URL; None for others."""
    if not url.lower().startswith("file://"):
        return None
    from urllib.parse import urlsplit  # noqa: PLC0415 - rarely needed
    from urllib.request import url2pathname  # noqa: PLC0415 - slow to import

    return url2pathname(urlsplit(url).path)


def shown_url(url: str) -> str:
    """Return a URL for people: without password, and without the query, which may hold a signature."""
    return printable(without_secrets(url), _SHOWN)


def shown_source(source: str | os.PathLike[str]) -> str:
    """Return a path or URL as reports show it: a URL without what nobody else may know."""
    text = os.fspath(source)
    return shown_url(text) if is_url(text) else printable(text, _SHOWN)


def name_of(url: str) -> str:
    """Return the last part of the URL's path: the file's name."""
    whole = next(
        (part for part in url.split("::") if "/" in part), url
    )  # of zip://INSIDE::s3://OUTSIDE the first
    return without_secrets(whole).rstrip("/").rsplit("/", 1)[-1]


def fetch(url: str) -> Text:
    """Return the file's bytes, mapped from a temporary file that is gone once they are let go. ReadError."""
    with open_scratch(0) or tempfile.TemporaryFile(buffering=0) as file:
        copied = [0, 0]  # bytes so far, and whether nobody waits for more
        try:
            ask(url, lambda: _copy(url, file, copied), heard=lambda: copied[0])
        finally:
            copied[1] = 1
        if not copied[0]:
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def place(url: str) -> tuple[Any, str]:
    """Return fsspec's file system of a URL, and the path in it. ReadError where a package is missing."""
    try:
        import fsspec  # noqa: PLC0415 - an extra
    except ImportError:
        raise ReadError(
            "reading a URL needs the package fsspec",
            "it is not installed",
            "pip install 'tracehunch[remote]', or download the file and give its path",
        ) from None
    system, path = ask(url, lambda: fsspec.core.url_to_fs(url, **_options(url)))
    return system, str(path)


def ask(
    url: str, call: Callable[[], Answer], *, heard: Callable[[], int] = lambda: 0, times: int = 1
) -> Answer:
    """Return what ``call`` does, in a thread that is left behind when nothing is heard for ``PATIENCE_S``.

    ``times``: have so many times the patience.

    What packages for file systems raise is of any kind, so every error becomes a ReadError.
    """
    answers: queue.SimpleQueue[tuple[Answer | None, BaseException | None]] = queue.SimpleQueue()

    def run() -> None:
        try:
            answers.put((call(), None))
        except BaseException as error:  # noqa: BLE001  # handed to the thread that asked
            answers.put((None, error))

    threading.Thread(target=run, daemon=True).start()
    while True:
        before = heard()
        try:
            answer, error = answers.get(timeout=PATIENCE_S * times)
        except queue.Empty:
            if heard() != before:
                continue
            raise ReadError(
                "does not answer",
                f"nothing came for {PATIENCE_S * times:g} seconds",
                "check the URL and the network",
            ) from None
        if error is not None:
            raise _failure(url, error)
        return answer  # type: ignore[return-value]  # there is no error, so this is the answer


def ask_all(calls: Sequence[tuple[str, Callable[[], Answer]]]) -> list[Answer | ReadError]:
    """Return what each of many calls for a URL does, in their order; so many at once that silence is cheap.

    A call may ask itself, several times: each has the patience that ``ask`` has.
    """
    answers: list[Answer | ReadError] = [ReadError("was not asked for")] * len(calls)
    waiting = queue.SimpleQueue[int]()
    for at in range(len(calls)):
        waiting.put(at)

    def work() -> None:
        while True:
            try:
                at = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                answers[at] = calls[at][1]()
            except Exception as error:  # noqa: BLE001  # of any kind, as above
                answers[at] = _failure(calls[at][0], error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(len(calls), _AT_ONCE))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def _copy(url: str, file: BinaryIO, copied: list[int]) -> None:
    system, path = place(url)
    how = {"block_size": 0} if _is_http(url) else {}  # one request, read as it comes
    with system.open(path, "rb", **how) as stream:
        while not copied[1] and (chunk := stream.read(_CHUNK)):
            file.write(chunk)
            copied[0] += len(chunk)
            if copied[0] > MOST_BYTES:
                raise ReadError(
                    f"more than the limit of {MOST_BYTES >> 30} GiB came in", "", "give a smaller trace"
                )


def _options(url: str) -> dict[str, Any]:
    """Return what the file system is opened with: aiohttp's own limit would end a long download."""
    if not _is_http(url):
        return {}
    import aiohttp  # noqa: PLC0415 - comes with fsspec's own extra

    return {"client_kwargs": {"timeout": aiohttp.ClientTimeout(total=None, sock_connect=PATIENCE_S)}}


def _is_http(url: str) -> bool:
    return url.lower().startswith(("http://", "https://"))


def _failure(url: str, error: BaseException) -> ReadError:
    """Say in one line what a file system's package raised."""
    if isinstance(error, ReadError):
        return error
    protocol = url.split(":", 1)[0]
    if isinstance(error, ImportError):
        return _missing_package(protocol, error)
    if isinstance(error, ValueError) and "protocol" in str(error).lower():
        return ReadError(
            f"{protocol}:// cannot be read here",
            "no package that knows it is installed",
            "install the one that fsspec uses for it, or download the file and give its path",
        )
    if isinstance(error, FileNotFoundError) and not _is_of_http(error.__cause__):
        return ReadError("cannot be opened", "there is no such file", "check the URL")
    if isinstance(error, PermissionError):
        return ReadError("cannot be opened", "access was denied", "check the credentials and the URL")
    return _of_server(error)


def _is_of_http(cause: BaseException | None) -> bool:
    """Whether HTTP failed in another way than 404: fsspec calls whatever happens to a URL "not found"."""
    return type(cause).__module__.partition(".")[0] == "aiohttp" and getattr(cause, "status", None) != _NONE


def _of_server(error: BaseException) -> ReadError:
    """Say what a server did; errors of packages that need not be installed go by their names."""
    if type(error).__name__ == "ClientPayloadError":
        return ReadError(
            "cannot be read", "the server's answer ended early", "try again, or download the file"
        )
    cause = error.__cause__ or error
    if (status := getattr(cause, "status", None)) in _DENIED:
        return ReadError(
            "cannot be opened", f"access was denied ({status})", "check the credentials and the URL"
        )
    return ReadError("cannot be opened", _answered(cause) or _said(cause), "check the URL and the network")


def _answered(error: BaseException) -> str:
    """Return what an HTTP server answered, in its own words; "" where the error is another."""
    if type(error).__name__ == "TooManyRedirects":
        return "it redirects without end"
    status, words = getattr(error, "status", None), getattr(error, "message", "")
    return f"the server says {status} {printable(str(words), _SHOWN)}".rstrip() if status else ""


def _missing_package(protocol: str, error: ImportError) -> ReadError:
    from fsspec.registry import known_implementations  # noqa: PLC0415 - an extra; its own error came from there

    package = known_implementations.get(protocol, {}).get("class", "").split(".")[0]
    if package in ("", "fsspec"):
        return ReadError(f"{protocol}:// cannot be read here", _said(error), "install what it asks for")
    return ReadError(
        f"{protocol}:// needs the package {package}",
        "it is not installed",
        f"pip install {package}, or download the file and give its path",
    )


def _said(error: BaseException) -> str:
    """Return the first line of an error's text without secrets, with its type where there is no text."""
    lines = without_secrets(str(error)).strip().splitlines()
    return printable(lines[0], _SHOWN) if lines else type(error).__name__


def without_secrets(text: str) -> str:
    """Return text without the passwords and signatures of the URLs in it."""
    return _QUERY.sub(r"\1", _LOGIN.sub("", text))
