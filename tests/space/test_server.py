"""The server, with short programs in the place of ``tracehunch attention``."""

from __future__ import annotations

import http.client
import json
import socket
import sys
import threading
import time
from dataclasses import dataclass

import pytest

from tracehunch.space.server.http import Handler, Server
from tracehunch.space.server.runs import Runs
from tracehunch.space.server.settings import Settings

GOOD = """
import json, pathlib
pathlib.Path("traces").mkdir()
pathlib.Path("traces/naive.json.gz").write_bytes(b"trace")
pathlib.Path("report.html").write_text("<p>report")
environment = {"machine": {"gpu": "NVIDIA <L4>"}, "versions": {"torch": "2.13.0+cu126", "cuda": "12.6"}}
variant = {"status": "ran", "look": {"trace": {"environment": environment}}}
pathlib.Path("report.json").write_text(json.dumps({"attention": {"variants": [variant]}}))
"""
WAITS = "print('<b>measuring', flush=True); __import__('time').sleep(600)"
FAILS = "print('first'); raise SystemExit('CUDA <out> of memory')"


WAITS_S = 120  # for what comes at once, but on a busy machine


@dataclass(frozen=True, slots=True)
class Instead(Settings):
    """Runs a program in the place of the measurement."""

    program: str = GOOD

    @property
    def command(self):
        return [sys.executable, "-c", self.program]


@dataclass
class Space:
    """A server, and how to ask it."""

    server: Server
    runs: Runs

    def ask(self, method, path, body=None, **headers):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.server_address[1], timeout=WAITS_S)
        connection.request(
            method, path, body, {name.replace("_", "-"): value for name, value in headers.items()}
        )
        answer = connection.getresponse()
        return answer, answer.read()

    def post(self, **headers):
        return self.ask("POST", "/run", **headers)[0].status

    def then(self, program, **more):
        """Run another program next."""
        said = {"gpu": True, "pause_s": 0, "program": program, **more}
        self.runs.settings = Instead(self.runs.settings.home, (), "l4x1", **said)

    def wait(self):
        until = time.monotonic() + WAITS_S
        while self.runs.status == "running" and time.monotonic() < until:
            time.sleep(0.02)
        return self.runs.status


@pytest.fixture
def space(tmp_path):
    runs = Runs(Instead(tmp_path, (), "l4x1", gpu=True, pause_s=0), tmp_path)
    with Server(0, runs) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield Space(server, runs)
        runs.stop()
        server.shutdown()


@pytest.fixture
def done(space):
    assert space.post() == 303
    assert space.wait() == "done"
    return space


def test_after_a_run_it_serves_the_report_under_a_bar(done):
    answer, page = done.ask("GET", "/?__sign=token")
    assert answer.status == 200
    assert b"NVIDIA &lt;L4&gt;" in page
    assert b"torch 2.13.0+cu126" in page
    assert b'<iframe src="/report.html"' in page
    assert b"http-equiv" not in page  # no longer refreshes
    assert b"No GPU" not in page
    assert done.ask("GET", "/report.html")[1] == b"<p>report"
    assert json.loads(done.ask("GET", "/healthz")[1]) == {"status": "done", "runs": 1}


def test_files_come_under_the_name_of_the_machine(done):
    answer, data = done.ask("GET", "/traces/naive.json.gz")
    assert data == b"trace"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="naive-nvidia-l4.json.gz"'
    assert done.ask("GET", "/traces.zip")[1].startswith(b"PK")


@pytest.mark.parametrize(
    "path",
    [
        "/traces/../report.json",
        "/traces/%2e%2e/report.json",
        "/traces/none.json.gz",
        "//etc/passwd",
        "/x",
        "/run",
    ],
)
def test_nothing_else_is_served(done, path):
    assert done.ask("GET", path)[0].status == 404


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (b"GET http://[x/ HTTP/1.1\r\nHost: x\r\n\r\n", b"404"),
        (b"POST /run HTTP/1.1\r\nHost: x\r\nOrigin: http://[x\r\n\r\n", b"403"),
        (b"\x16\x03\x01 no HTTP at all\r\n\r\n", b"400"),
    ],
)
def test_what_is_no_request_is_answered(space, request_, code, caplog):
    with socket.create_connection(space.server.server_address, timeout=WAITS_S) as client:
        client.sendall(request_)
        client.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: client.recv(65_536), b""))
    assert code in answer
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


def test_head_has_no_content(done):
    answer, data = done.ask("HEAD", "/report.json")
    assert (answer.status, data) == (200, b"")
    assert int(answer.headers["Content-Length"]) > 0


@pytest.mark.parametrize("path", ["/", "/report.html", "/report.json", "/traces.zip", "/healthz", "/none"])
def test_each_answer_may_be_framed_by_the_hub_and_by_nobody_else(done, path):
    headers = done.ask("GET", path)[0].headers
    assert "frame-ancestors 'self' https://huggingface.co" in headers["Content-Security-Policy"]
    assert "X-Frame-Options" not in headers
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"  # no-referrer would make the Origin of a POST null
    assert "Python" not in headers["Server"]


def test_the_report_is_in_a_sandbox_without_this_origin(done):
    policy = done.ask("GET", "/report.html")[0].headers["Content-Security-Policy"]
    assert "sandbox allow-scripts" in policy
    assert "allow-same-origin" not in policy
    assert "default-src" not in policy  # its own policy says that


def test_while_running_the_page_refreshes_and_a_second_run_is_refused(space):
    space.then(WAITS)
    assert space.post() == 303
    until = time.monotonic() + WAITS_S
    while b"measuring" not in (page := space.ask("GET", "/")[1]) and time.monotonic() < until:
        time.sleep(0.05)
    assert b'http-equiv="refresh"' in page
    assert b"&lt;b&gt;measuring" in page
    answer, said = space.ask("POST", "/run")
    assert answer.status == 409
    assert int(answer.headers["Retry-After"]) > 0
    assert b"under way" in said
    assert space.ask("GET", "/report.json")[0].status == 404
    assert space.runs.count == 1


def test_after_a_run_there_is_a_pause(done):
    done.then(GOOD, pause_s=3000)
    answer, _ = done.ask("POST", "/run")
    assert answer.status == 429
    assert 0 < int(answer.headers["Retry-After"]) <= 3001
    done.then(GOOD)
    assert done.post() == 303


def test_a_run_that_fails_is_told_and_the_last_report_stays(done):
    done.then(FAILS)
    assert done.post() == 303
    assert done.wait() == "failed"
    _, page = done.ask("GET", "/")
    assert b"CUDA &lt;out&gt; of memory" in page
    assert b"exit code 1" in page
    assert b"--cuda" in page  # what to do
    assert done.ask("GET", "/report.html")[1] == b"<p>report"
    done.then(GOOD)
    assert done.post() == 303
    assert done.wait() == "done"
    assert [one.name for one in done.runs.scratch.iterdir()] == [done.runs.result.folder.name]


@pytest.mark.parametrize(
    ("program", "more", "said"),
    [
        (WAITS, {"timeout_s": 0.5}, "took more than 0 s"),
        ("import os; os.kill(os.getpid(), 9)", {}, "memory"),
        ("raise SystemExit(3)", {}, "exit code 3: it printed nothing"),
        ("pass", {}, "report.html"),
        (GOOD.replace('"variants"', '"other"'), {}, "KeyError"),
    ],
)
def test_each_way_to_fail_is_said(space, program, more, said):
    space.then(program, **more)
    assert space.post() == 303
    assert space.wait() == "failed"
    assert said in space.runs.error


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Sec_Fetch_Site": "same-origin"}, 303),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Origin": "http://me-space.hf.space"}, 403),
        ({"Origin": "https://me-space.hf.space"}, 303),
        ({"Origin": "https://huggingface.co"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({}, 303),  # no browser
    ],
)
def test_runs_are_started_from_its_own_page_or_by_no_browser(space, monkeypatch, headers, code):
    monkeypatch.setenv("SPACE_HOST", "me-space.hf.space")
    assert space.post(**headers) == code
    assert space.runs.count == (code == 303)
    space.wait()


def test_a_post_that_brings_much_or_goes_elsewhere_is_refused(space):
    assert space.ask("POST", "/run", Content_Length="70000")[0].status == 413  # told before any of it is read
    assert space.ask("POST", "/", b"x")[0].status == 404
    assert space.ask("PUT", "/run", b"x")[0].status == 501
    assert space.runs.count == 0


def test_a_gpu_that_was_not_found_is_said(space):
    space.then(GOOD.replace('{"gpu": "NVIDIA <L4>"}', '{"cpu": "Xeon", "threads": 1}'))
    space.post()
    space.wait()
    _, page = space.ask("GET", "/")
    assert b"Xeon \xc2\xb7 1 thread \xc2\xb7 torch" in page
    assert b"No GPU was found: choose l4x1" in page


def test_connections_beyond_a_number_are_closed_and_the_rest_served(space, monkeypatch):
    monkeypatch.setattr(Handler, "timeout", 2 * WAITS_S)  # none is closed for its silence
    port = space.server.server_address[1]
    silent = [http.client.HTTPConnection("127.0.0.1", port) for _ in range(32)]
    for one in silent:
        one.connect()
    until = time.monotonic() + WAITS_S
    while space.server._free._value and time.monotonic() < until:
        time.sleep(0.02)
    with pytest.raises((http.client.HTTPException, OSError)):
        space.ask("GET", "/healthz")
    for one in silent:
        one.close()
    while not space.server._free._value and time.monotonic() < until:
        time.sleep(0.02)
    assert space.ask("GET", "/healthz")[0].status == 200


def test_a_run_gets_no_more_threads_than_the_space_has_cores(tmp_path, monkeypatch):
    settings = Settings(tmp_path, (), "cpu-basic", gpu=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.delenv("CPU_CORES", raising=False)
    assert "OMP_NUM_THREADS" not in settings.environment
    monkeypatch.setenv("CPU_CORES", "2")
    assert settings.environment["OMP_NUM_THREADS"] == "2"
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert settings.environment["OMP_NUM_THREADS"] == "7"
    assert settings.environment["PYTHONPATH"].split(":")[0] == str(tmp_path)


# in a real browser, in the frame that the Hub shows it in

HUB = "https://huggingface.co/spaces/me/space"
HERE = "https://me-space.hf.space"


@pytest.fixture
def framed(done, browser, monkeypatch):
    """Open a page elsewhere that has the Space in a frame, as the Hub does, and a form that posts to it."""
    monkeypatch.setenv("SPACE_HOST", "me-space.hf.space")
    context = browser.new_context()
    port = done.server.server_address[1]

    def pass_on(route):
        path = route.request.url.removeprefix(HERE)
        answer = route.fetch(
            url=f"http://127.0.0.1:{port}{path}", headers=route.request.all_headers(), max_redirects=0
        )
        route.fulfill(response=answer)

    def open_(address):
        inside = (
            f'<iframe src="{HERE}/" sandbox="allow-downloads allow-forms allow-same-origin allow-scripts">'
            f'</iframe><form method="post" action="{HERE}/run"><button>Run</button></form>'
        )
        page = context.new_page()
        page.route(f"{HERE}/**", pass_on)
        page.route(f"{address}**", lambda route: route.fulfill(content_type="text/html", body=inside))
        page.goto(address)
        return page

    yield open_
    context.close()


def test_in_the_hubs_frame_it_shows_the_report_and_runs_again(framed, done):
    page = framed(HUB)
    frame = page.frame(url=f"{HERE}/")
    assert page.frame(url=f"{HERE}/report.html").inner_text("p") == "report"
    with page.expect_response(f"{HERE}/run") as answer:
        frame.click("button")
    assert answer.value.status == 303
    assert done.runs.count == 2


@pytest.mark.parametrize("address", [HUB, "https://elsewhere.example/"])
def test_a_form_elsewhere_starts_nothing(framed, done, address):
    page = framed(address)
    with page.expect_response(f"{HERE}/run") as answer:
        page.click("body > form button")
    assert answer.value.status == 403
    assert done.runs.count == 1


def test_no_other_site_can_frame_it(framed):
    page = framed("https://elsewhere.example/")
    assert page.frame(url=f"{HERE}/") is None
