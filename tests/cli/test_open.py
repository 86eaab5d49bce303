from __future__ import annotations

import fcntl
import gzip
import http.client
import json
import lzma
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
from click.testing import CliRunner, Result

from tracehunch.cli import main
from tracehunch.cli.perfetto_file import perfetto_file, plain_name
from tracehunch.cli.serve_once import HOST, PAGE, PORT, Served, serve_once
from tracehunch.errors import TracehunchError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DATA = Path(__file__).parents[1] / "data"
NAIVE = DATA / "h200" / "seeds" / "naive.json.gz"

PATIENCE = 300  # fifths of a second
WAITS_S = 120  # for what comes at once, but on a busy machine

STAND_IN = """<!doctype html>
<meta http-equiv="Content-Security-Policy"
 content="default-src 'self' 'unsafe-inline'; connect-src 'self' http://127.0.0.1:9001">
<output></output><script>
(async () => {
  const address = new URLSearchParams(location.hash.split("?")[1]).get("url");
  const said = document.querySelector("output");
  try {
    const data = await (await fetch(address)).arrayBuffer();
    const hash = new Uint8Array(await crypto.subtle.digest("SHA-256", data));
    said.textContent = [...hash].map((one) => one.toString(16).padStart(2, "0")).join("");
  } catch (error) {
    said.textContent = "refused: " + error;
  }
})();
</script>"""
"""What Perfetto does with a link: it fetches what `url` names, under a policy like its own."""


@pytest.fixture
def free_port() -> Iterator[None]:
    """Have the port to oneself: other tests, in this process or another, wait for it."""
    with (Path(tempfile.gettempdir()) / "tracehunch-tests-port.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _wait_for_port()
        yield


def _wait_for_port() -> None:
    """Wait a moment: a server of the test before may still be about to end."""
    for _ in range(PATIENCE):
        with socket.socket() as tried:
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind((HOST, PORT))
            except OSError:
                time.sleep(0.2)
            else:
                return
    pytest.skip(f"something else listens on port {PORT} of this machine")


def open_(*args: str | Path, stdin: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["open", *map(str, args)], input=stdin)


class Server:
    """serve_once on a thread of its own."""

    def __init__(self, served: Served, patience_s: float = WAITS_S) -> None:
        self.served = served
        self.came = threading.Event()
        self.result: bool | None = None
        self.thread = threading.Thread(target=self._run, args=(patience_s,), daemon=True)
        self.thread.start()
        assert self.came.wait(WAITS_S)

    def _run(self, patience_s: float) -> None:
        self.result = serve_once(self.served, patience_s, self.came.set)

    def ask(self, path: str | None = None, method: str = "GET", **headers: str) -> tuple[int, bytes, Any]:
        connection = http.client.HTTPConnection(HOST, PORT, timeout=WAITS_S)
        connection.putrequest(method, path or urlsplit(self.served.url).path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders()
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body, answer.headers


needs_port = pytest.mark.usefixtures("free_port")


@pytest.fixture
def server(free_port: None) -> Iterator[Server]:  # noqa: ARG001  # it keeps the port
    made = Server(Served("trace.json", memoryview(b'{"traceEvents": []}')))
    yield made
    if made.result is None:
        made.ask()
    made.thread.join(WAITS_S)


def test_file_is_served_once_and_then_the_wait_ends(server: Server) -> None:
    status, body, headers = server.ask(Origin=PAGE)
    assert (status, body) == (200, b'{"traceEvents": []}')
    assert headers["Access-Control-Allow-Origin"] == PAGE
    server.thread.join(WAITS_S)
    assert server.result is True
    with pytest.raises(ConnectionRefusedError):
        server.ask()


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/", {}, 404),
        ("/trace.json", {}, 404),
        ("/../../etc/passwd", {}, 404),
        ("/%2e%2e/%2e%2e/etc/passwd", {}, 404),
        (None, {"Origin": "https://example.org"}, 403),
        (None, {"Origin": "null"}, 403),
        (None, {"Host": "evil.example:9001"}, 403),
    ],
)
def test_nothing_else_is_served_and_to_nobody_else(
    server: Server, path: str | None, headers: dict[str, str], status: int
) -> None:
    seen, body, answered = server.ask(path, **headers)
    assert seen == status
    assert b"traceEvents" not in body
    assert answered["Access-Control-Allow-Origin"] is None
    assert server.result is None


def test_preflight_is_answered_and_is_no_reading(server: Server) -> None:
    status, _, headers = server.ask(method="OPTIONS", Origin=PAGE)
    assert status == 204
    assert headers["Access-Control-Allow-Private-Network"] == "true"
    assert server.result is None


@needs_port
def test_connection_that_breaks_off_is_no_reading() -> None:
    server = Server(Served("trace.json", memoryview(bytes(64 << 20))))
    with socket.create_connection((HOST, PORT)) as half:
        half.sendall(
            f"GET {urlsplit(server.served.url).path} HTTP/1.0\r\nHost: {HOST}:{PORT}\r\n\r\n".encode()
        )
        half.recv(1000)
    time.sleep(0.5)
    assert server.result is None
    assert len(server.ask()[1]) == 64 << 20
    server.thread.join(WAITS_S)
    assert server.result is True


@needs_port
def test_who_reads_at_the_same_time_gets_all_too() -> None:
    size = 64 << 20
    server = Server(Served("trace.json", memoryview(bytes(size))))
    with socket.create_connection((HOST, PORT)) as slow:
        slow.sendall(
            f"GET {urlsplit(server.served.url).path} HTTP/1.0\r\nHost: {HOST}:{PORT}\r\n\r\n".encode()
        )
        got = len(slow.recv(1000))
        assert len(server.ask()[1]) == size
        server.thread.join(0.5)
        assert server.thread.is_alive()
        while part := slow.recv(1 << 20):
            got += len(part)
    assert got > size
    server.thread.join(WAITS_S)
    assert server.result is True


@needs_port
def test_wait_ends_by_itself() -> None:
    result = open_(NAIVE, "--no-browser", "--timeout", "1")
    assert result.exit_code == 2
    assert result.stdout.startswith(f"{PAGE}/#!/?url=http://{HOST}:{PORT}/")
    assert "nobody read the trace within 1 seconds" in result.stderr


@needs_port
def test_port_that_is_taken_is_told() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind((HOST, PORT))
        taken.listen()
        result = open_(NAIVE, "--no-browser")
    assert result.exit_code == 2
    assert result.stdout == ""
    assert "port 9001 of this machine cannot be opened" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@needs_port
@pytest.mark.skipif(os.name != "posix", reason="sends a signal as a terminal does")
def test_ctrl_c_ends_it() -> None:
    command = [sys.executable, "-m", "tracehunch", "open", str(NAIVE), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith(PAGE)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=WAITS_S)
    assert running.returncode == 130
    assert errors.splitlines()[-1] == "tracehunch: interrupted"


def test_missing_file_and_what_is_no_trace(tmp_path: Path) -> None:
    missing = open_(tmp_path / "none.json")
    assert missing.exit_code == 2
    assert "none.json: cannot be opened: No such file or directory" in missing.stderr
    (tmp_path / "notes.json").write_text("hello")
    other = open_(tmp_path / "notes.json")
    assert other.exit_code == 2
    assert "is no trace in JSON" in other.stderr
    assert open_(tmp_path).exit_code == 2


def test_content_is_what_the_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = gzip.decompress(NAIVE.read_bytes())
    (tmp_path / "a.json").write_bytes(text)
    (tmp_path / "b.json.xz").write_bytes(lzma.compress(text))
    (tmp_path / "c.json").write_bytes(text.decode().encode("utf-16"))
    assert bytes(perfetto_file(str(NAIVE)).data) == NAIVE.read_bytes()
    assert bytes(perfetto_file(str(tmp_path / "a.json")).data) == text
    unpacked = perfetto_file(str(tmp_path / "b.json.xz"))
    assert (bytes(unpacked.data), unpacked.name) == (text, "b.json")
    assert bytes(perfetto_file(str(tmp_path / "c.json")).data) == text

    class Stdin:
        buffer = (tmp_path / "a.json").open("rb")

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert bytes(perfetto_file("-").data) == text


def test_folder_gives_its_newest_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for age, name in enumerate(["new.json.gz", "old.json.gz"]):
        (tmp_path / name).write_bytes(NAIVE.read_bytes())
        os.utime(tmp_path / name, (1e9 - age, 1e9 - age))
    assert perfetto_file(str(tmp_path)).name == "new.json.gz"
    assert "new.json.gz, the newest trace in the folder" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    with pytest.raises(TracehunchError, match="empty: a folder without a trace"):
        perfetto_file(str(tmp_path / "empty"))


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("run 1 <b>&?#.json", "run-1-b.json"),
        ("../../etc/passwd", "etc-passwd.json"),
        ("\udcff\n.json.gz", "trace.json"),
        ("ünï.JSON.XZ", "n.json"),
        ("x" * 5000 + ".json", "x" * 100 + ".json"),
    ],
)
def test_name_in_the_link_needs_no_escapes(name: str, plain: str) -> None:
    assert plain_name(name) == plain
    served = Served(plain_name(name), memoryview(b""))
    assert unquote(served.link) == served.link


@pytest.fixture
def perfetto(browser: Any) -> Iterator[Callable[[str], str]]:
    """A page in Perfetto's place, in a browser that guards its requests as it would Perfetto's."""
    contexts = []

    def visit(link: str, *, allowed: bool = True) -> str:
        context = browser.new_context()
        contexts.append(context)
        if allowed:
            try:
                context.grant_permissions(["local-network-access"], origin=PAGE)
            except Exception as error:  # noqa: BLE001  # browsers before 142 know no such permission
                assert "Unknown permission" in str(error)  # noqa: PT017  # as above
        context.route(f"{PAGE}/**", lambda route: route.fulfill(body=STAND_IN, content_type="text/html"))
        page = context.new_page()
        page.goto(link)
        page.locator("output:not(:empty)").wait_for()
        return str(page.inner_text("output"))

    yield visit
    for context in contexts:
        context.close()


def opened(*args: str | Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tracehunch", "open", *map(str, args)]
    command += ["--no-browser", "--timeout", "300"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@needs_port
def test_perfetto_reads_it_in_a_real_browser(perfetto: Callable[..., str]) -> None:
    with opened(NAIVE) as running:
        assert running.stdout is not None
        seen = perfetto(running.stdout.readline().strip())
        assert running.wait(WAITS_S) == 0
    assert seen == sha256(NAIVE.read_bytes()).hexdigest()


@needs_port
def test_perfetto_reads_the_part_around_a_finding(perfetto: Callable[..., str], tmp_path: Path) -> None:
    part = tmp_path / "part.json"
    with opened(NAIVE, "--evidence", "hidden-copy", "-o", part) as running:
        assert running.stdout is not None
        seen = perfetto(running.stdout.readline().strip())
        assert running.wait(WAITS_S) == 0
    assert seen == sha256(part.read_bytes()).hexdigest()
    again = CliRunner().invoke(main, ["look", str(part), "--format", "json"])
    assert "hidden-copy" in [one["id"] for one in json.loads(again.stdout)["findings"]]


def test_which_of_several_findings_is_shown(tmp_path: Path) -> None:
    train = DATA / "h200" / "models" / "llama_sdpa_train.json.gz"
    part = tmp_path / "part.json.gz"
    first = open_(train, "--evidence", "hidden-copy", "-o", part, "--no-open")
    assert first.exit_code == 0
    assert "--evidence hidden-copy:2 takes the next" in first.stderr
    shown = {}
    for number in (1, 2):
        assert open_(train, "--evidence", f"hidden-copy:{number}", "-o", part, "--no-open").exit_code == 0
        shown[number] = gzip.decompress(part.read_bytes())
    assert shown[1] != shown[2]
    beyond = open_(train, "--evidence", "hidden-copy:99")
    assert beyond.exit_code == 2
    assert "there is no hidden-copy:99" in beyond.stderr
    assert open_(train, "--evidence", "hidden-copy:two").exit_code == 2
    assert "did you mean hidden-copy?" in open_(train, "--evidence", "hiden-copy").stderr


def test_options_that_do_not_go_together(tmp_path: Path) -> None:
    assert open_(NAIVE, "-o", tmp_path / "x.json").exit_code == 2
    assert open_(NAIVE, "--evidence", "hidden-copy", "--no-open").exit_code == 2
    other = open_(NAIVE, "--evidence", "hidden-copy", "--no-open", "-o", tmp_path / "x.html")
    assert (other.exit_code, list(tmp_path.iterdir())) == (2, [])
    assert "name it .json or .json.gz" in other.stderr
    copy = tmp_path / "a.json.gz"
    copy.write_bytes(NAIVE.read_bytes())
    refused = open_(copy, "--evidence", "hidden-copy", "-o", copy)
    assert "will not overwrite" in refused.stderr
    assert copy.read_bytes() == NAIVE.read_bytes()
