"""The answers, each in a thread, up to a number of them.

=====  ==================================================  ================================================
GET    /                                                   the state of a run, then the report under a bar
GET    /report.html /report.json /traces.zip /traces/NAME  the newest good run
GET    /healthz                                            {"status": "running", "runs": 1}
POST   /run                                                measure again; 303, or 409, 429, 503 if not now
=====  ==================================================  ================================================
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from tracehunch.space.server import pages

if TYPE_CHECKING:
    from email.message import Message
    from urllib.parse import SplitResult

    from tracehunch.space.server.runs import Runs

_MOST_CONNECTIONS: Final = 32
_MOST_BODY_BYTES: Final = 65_536
_SILENCE_S: Final = 15
"""So long a connection may say nothing."""

_HTML: Final = "text/html; charset=utf-8"
_FILES: Final = {
    "/report.html": (_HTML, "report.html"),
    "/report.json": ("application/json", "report.json"),
    "/traces.zip": ("application/zip", "traces.zip"),
}
"""Path -> its type, and the file in the folder of a run."""

_TRACE: Final = re.compile(r"/(traces/[a-z0-9_]{1,64}\.json\.gz)")

_log = logging.getLogger("space")


def is_ours(headers: Message) -> bool:
    """Whether a POST comes from a page of this Space, or from no browser at all.

    A page elsewhere cannot hide that it is one: browsers say so, in one of two headers, with every POST.
    """
    site = headers.get("Sec-Fetch-Site")
    if site is not None:
        return site == "same-origin"
    origin = headers.get("Origin")
    hosts = {headers.get("Host"), os.environ.get("SPACE_HOST")} - {None, ""}
    return origin is None or _parts(origin).netloc in hosts


def _parts(url: str) -> SplitResult:
    """Return the parts of what a client sent as a URL; of what is none, nothing."""
    try:
        return urlsplit(url)
    except ValueError:  # as http://[x
        return urlsplit("")


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    timeout = _SILENCE_S
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:  # the name that http.server calls
        """Serve a page, or a file of the newest good run."""
        path, runs = _parts(self.path).path, self.server.runs
        if path == "/":
            self._send(200, _HTML, pages.current(runs), pages.PAGE_POLICY)
        elif path == "/healthz":
            said = json.dumps({"status": runs.status, "runs": runs.count})
            self._send(200, "application/json", said.encode())
        else:
            self._file(path)

    def do_HEAD(self) -> None:  # as above
        """Answer as to a GET, without the content."""
        self.do_GET()

    def do_POST(self) -> None:  # as above
        """Start a run."""
        length = self.headers.get("Content-Length") or "0"
        if not length.isdecimal() or int(length) > _MOST_BODY_BYTES:
            self._refuse(413, "That is too much; POST /run takes nothing.")
            return
        self.rfile.read(int(length))
        if _parts(self.path).path != "/run":
            self._refuse(404, "There is no such page.")
        elif not is_ours(self.headers):
            self._refuse(403, "Runs are started from this Space's own page.")
        elif refusal := self.server.runs.start():
            self._refuse(refusal.code, refusal.why, refusal.wait_s)
        else:
            self._send(303, _HTML, b"", Location="/")

    def _file(self, path: str) -> None:
        result = self.server.runs.result
        trace = _TRACE.fullmatch(path)
        kind, name = ("application/gzip", trace[1]) if trace else _FILES.get(path, ("", ""))
        try:
            data = (result.folder / name).read_bytes() if result is not None and name else None
        except OSError:  # no such trace, or a newer run has just replaced this one
            data = None
        if result is None or data is None:
            self._refuse(404, "There is no such file, or no run is done yet.")
        elif kind == _HTML:
            self._send(200, kind, data, pages.REPORT_POLICY)
        else:
            stem, _, ending = name.rpartition("/")[2].partition(".")
            saved = f'attachment; filename="{stem}-{result.slug}.{ending}"'
            self._send(200, kind, data, **{"Content-Disposition": saved})

    def _refuse(self, code: int, why: str, wait_s: int = 0) -> None:
        later = {"Retry-After": str(wait_s)} if wait_s else {}
        self._send(code, _HTML, pages.refused(why), pages.PAGE_POLICY, **later)

    def _send(
        self, code: int, kind: str, data: bytes, policy: str = pages.FILE_POLICY, **headers: str
    ) -> None:
        """Send an answer. With a stricter referrer policy, a POST from these pages would hide its origin."""
        common = {
            "Content-Type": kind,
            "Content-Length": str(len(data)),
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "same-origin",
            "Cache-Control": "no-store",
            "Connection": "close",
        }
        self.send_response(code)
        for name, value in {**common, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def version_string(self) -> str:
        """Name no versions."""
        return "tracehunch-space"

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:  # noqa: ARG002  # its signature
        """Log what starts a run and what is refused; never the query, which may hold a token."""
        if self.command == "POST" or int(code) >= 400:
            path = _parts(getattr(self, "path", "")).path  # a request that cannot be read has none
            _log.info("%s %.200r %d", self.command, path, int(code))

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # its signature
        """Say nothing of requests that are none."""


class Server(ThreadingHTTPServer):
    """Has a number of threads; a connection that finds none free is closed."""

    daemon_threads = True
    request_queue_size = _MOST_CONNECTIONS

    def __init__(self, port: int, runs: Runs) -> None:
        super().__init__(("0.0.0.0", port), Handler)  # noqa: S104  # a container's one way out
        self.runs = runs
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread, if one is free."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and free the thread's place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:  # noqa: ARG002  # its signature
        """Log one line; a browser that goes away is no event."""
        failure = sys.exc_info()[1]
        if not isinstance(failure, OSError):
            _log.error("%s: %s", type(failure).__name__, failure)
