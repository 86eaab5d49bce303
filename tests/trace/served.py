"""A folder served over HTTP on this machine, and servers that never answer, or not as they should."""

from __future__ import annotations

import http.server
import socket
import threading
from contextlib import contextmanager
from functools import partial


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextmanager
def served(folder):
    """The URL of the folder, with a slash at its end."""
    handler = partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()


@contextmanager
def silent():
    """The URL of a server that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/trace.json"


class _Odd(http.server.BaseHTTPRequestHandler):
    """``/403/x`` answers 403; ``/again/x`` redirects to itself; ``/half/x`` ends in the middle."""

    def log_message(self, *_):
        pass

    def do_GET(self):
        kind = self.path.split("/")[1]
        self.send_response(int(kind) if kind.isdecimal() else {"again": 302, "half": 200}[kind])
        self.send_header("Location", self.path)
        self.send_header("Content-Length", "1000" if kind == "half" else "0")
        self.end_headers()
        if kind == "half" and self.command == "GET":
            self.wfile.write(b"{" * 500)

    do_HEAD = do_GET  # noqa: N815  # the name is the package's


@contextmanager
def odd():
    """The URL of a server whose answers are of the kind that the path begins with."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Odd) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
