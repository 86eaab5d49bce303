"""One file, served once on this machine to one page: ui.perfetto.dev."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import get_ident
from time import monotonic, sleep
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from collections.abc import Callable

HOST: Final = "127.0.0.1"
PORT: Final = 9001
"""The one local port that Perfetto's policy lets it read from."""

PAGE: Final = "https://ui.perfetto.dev"
_CHUNK: Final = 1 << 20
_TICK_S: Final = 0.2
_STALLED_S: Final = 30


@dataclass(slots=True)
class Served:
    """The file and what became of it. `path` is not to be guessed, so that no other page reads it.

    `reading` holds the threads that answer: a browser that asks twice is not cut off when the first has all.
    """

    name: str
    data: memoryview
    path: str = field(default_factory=lambda: f"/{secrets.token_urlsafe(16)}")
    done: bool = False
    reading: set[int] = field(default_factory=set)

    @property
    def url(self) -> str:
        """Where the file is."""
        return f"http://{HOST}:{PORT}{self.path}/{quote(self.name)}"

    @property
    def link(self) -> str:
        """What to open in a browser."""
        return f"{PAGE}/#!/?url={quote(self.url, safe=':/')}"


def serve_once(served: Served, patience_s: float, ready: Callable[[], None]) -> bool:
    """Serve the file until it was read once; return whether it was within `patience_s` seconds.

    `ready` is called when the port is open.

    Raises:
        TracehunchError: the port is taken.

    """
    try:
        server = _Server((HOST, PORT), _handler(served))
    except OSError as error:
        raise TracehunchError(
            f"port {PORT} of this machine cannot be opened",
            error.strerror or str(error),
            "stop what listens there (another tracehunch open?): Perfetto reads from no other port",
        ) from None
    with server:
        ready()
        until = monotonic() + patience_s
        while not served.done and (left := until - monotonic()) > 0:
            server.timeout = min(left, _TICK_S)
            server.handle_request()
        while served.done and served.reading and monotonic() < until:
            sleep(_TICK_S)
    return served.done


class _Server(ThreadingHTTPServer):
    """Browsers open connections that they do not use: each has a thread, so that none holds up the others."""

    daemon_threads = True
    allow_reuse_address = os.name == "posix"  # on Windows it would let two servers have the port at once

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing of a connection that breaks: the browser asks again, or the wait ends."""


def _handler(served: Served) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        """Answers for the one file, asked for by the one page."""

        timeout = _STALLED_S

        def do_GET(self) -> None:  # the name that http.server calls
            if not self._is_ours():
                return
            self.send_response(200)
            self._allow()
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(len(served.data)))
            self.end_headers()
            served.reading.add(get_ident())
            try:
                for at in range(0, len(served.data), _CHUNK):
                    self.wfile.write(served.data[at : at + _CHUNK])
                served.done = True
            finally:
                served.reading.discard(get_ident())

        def do_OPTIONS(self) -> None:  # as above
            if not self._is_ours():
                return
            self.send_response(204)
            self._allow()
            self.send_header("Access-Control-Allow-Methods", "GET")
            self.send_header("Access-Control-Allow-Private-Network", "true")
            self.end_headers()

        def _is_ours(self) -> bool:
            """Refuse other files, other pages, and names that lead here by a trick of DNS."""
            host = self.headers.get("Host", "")
            origin = self.headers.get("Origin")
            wanted = self.path.split("?")[0] == f"{served.path}/{quote(served.name)}"
            if wanted and host in (f"{HOST}:{PORT}", f"localhost:{PORT}") and origin in (None, PAGE):
                return True
            self.send_error(404 if not wanted else 403)
            return False

        def _allow(self) -> None:
            self.send_header("Access-Control-Allow-Origin", PAGE)
            self.send_header("Cache-Control", "no-store")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the name it has there
            """Say nothing: stderr is for people."""

    return Handler
