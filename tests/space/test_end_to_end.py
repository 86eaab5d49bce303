"""A Space written by the command line, its app run as its container would, on this machine's CPU."""

from __future__ import annotations

import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
import zipfile
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from tracehunch.cli import main

SMALL = [
    "--batch",
    "1",
    "--heads",
    "2",
    "--seq",
    "32",
    "--head-dim",
    "16",
    "--steps",
    "2",
    "--warmup",
    "0",
    "--no-verify",
]
VARIANTS = ["--variant", "naive", "--variant", "sdpa_math"]
ON_LINUX = Path("/proc/self/task").is_dir()
H200 = Path(__file__).parents[1] / "data" / "h200"
needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="runs attention with torch")


def cli(*args):
    return CliRunner().invoke(main, [*args], env={"NO_COLOR": "1", "COLUMNS": "80"})


# writing


def test_the_command_says_what_it_wrote_and_uploads_nothing(tmp_path):
    folder = tmp_path / "my space"
    result = cli("space", str(folder), "--hardware", "a10g-small", "--seq", "2048", "--full", *VARIANTS)
    assert result.exit_code == 0
    assert "tracehunch attention --variant naive --variant sdpa_math --seq 2048 --full" in result.stdout
    assert "torch 2.13.0+cu126" in result.stdout
    assert f"hf upload USER/NAME '{folder}' . --type space" in result.stdout
    said = json.loads((folder / "settings.json").read_text())
    assert said["options"] == [*VARIANTS, "--seq", "2048", "--full"]
    assert (said["hardware"], said["gpu"]) == ("a10g-small", True)
    assert (folder / "Dockerfile").is_file()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--hardware", "h200"], "Jobs"),
        (["--heads", "6", "--kv-heads", "4"], "not a multiple"),
        (["--seq", "0"], "--seq 0 is no size"),
        (["--torch", "nightly"], "--torch nightly"),
        (["--variant", "nope"], "nope"),
        (["--title", "a\nb"], "--title"),
    ],
)
def test_what_could_not_run_is_refused_before_anything_is_written(tmp_path, options, said):
    result = cli("space", str(tmp_path / "space"), *options)
    assert result.exit_code == 2
    assert said in result.stderr
    assert list(tmp_path.iterdir()) == []


# running


@dataclass
class App:
    process: subprocess.Popen
    port: int

    def ask(self, path, method="GET"):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", method=method)
        opener = urllib.request.build_opener(Stays)
        try:
            with opener.open(request, timeout=120) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refusal:
            return refusal.code, refusal.read()

    def wait(self):
        until = time.monotonic() + 600
        while time.monotonic() < until:
            status = json.loads(self.ask("/healthz")[1])["status"]
            if status != "running":
                return status
            time.sleep(0.2)
        return "too slow"


class Stays(urllib.request.HTTPRedirectHandler):
    """Follows nothing."""

    def redirect_request(self, *_):
        return None


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("space") / "space"
    result = cli("space", str(folder), *SMALL, *VARIANTS)
    assert result.exit_code == 0, result.output
    settings = json.loads((folder / "settings.json").read_text())
    (folder / "settings.json").write_text(json.dumps({**settings, "pause_s": 0}))
    return folder


@pytest.fixture(scope="module")
def app(folder, tmp_path_factory):
    """The app, the Space's own tracehunch first on its path, and nothing written into the Space."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PORT": "0", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path_factory.mktemp("bytecode"))
    environment["TMPDIR"] = str(tmp_path_factory.mktemp("tmp"))
    with subprocess.Popen(
        [sys.executable, "app.py"], cwd=folder, env=environment, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        port = re.search(r"serving on port (\d+)", process.stdout.readline())
        yield App(process, int(port[1]))
        process.kill()


@needs_torch
def test_the_app_from_start_to_end(app, folder, tmp_path):
    first_run(app, folder, tmp_path)
    second_run(app)


def first_run(app, folder, tmp_path):
    """While it runs, the page waits; then it has the report and the traces."""
    status, page = app.ask("/")
    assert status == 200
    assert b"Measuring attention" in page
    assert app.ask("/run", "POST")[0] == 409
    assert app.wait() == "done", app.ask("/")[1].decode()

    report = json.loads(app.ask("/report.json")[1])
    variants = report["attention"]["variants"]
    assert [one["name"] for one in variants] == ["naive", "sdpa_math"]
    environment = variants[0]["look"]["trace"]["environment"]
    assert environment["versions"]["torch"]
    assert environment["machine"]["threads"] == 1
    page = app.ask("/")[1].decode()
    assert f"torch {environment['versions']['torch']}" in page
    assert "No GPU" not in page  # none was asked for
    assert b"Content-Security-Policy" in app.ask("/report.html")[1]

    with zipfile.ZipFile(io.BytesIO(app.ask("/traces.zip")[1])) as archive:
        assert archive.namelist() == ["naive.json.gz", "sdpa_math.json.gz"]
        archive.extractall(tmp_path)
    looked = cli("look", str(tmp_path / "naive.json.gz"), "--format", "json")
    assert looked.exit_code == 0
    assert json.loads(looked.stdout)["trace"]["environment"] == environment

    here, there = tmp_path / "naive.json.gz", H200 / "seeds" / "naive.json.gz"
    assert cli("diff", str(here), str(there)).exit_code == 0  # the same variant on other hardware
    assert not list(folder.rglob("__pycache__"))


def second_run(app):
    """It runs again on demand, and told to stop ends that run too."""
    assert app.ask("/run", "POST")[0] == 303
    assert app.ask("/run", "POST")[0] == 409
    assert app.ask("/report.json")[0] == 200  # the last one, while the next is under way
    running, until = [], time.monotonic() + 300
    while not running and ON_LINUX and time.monotonic() < until:
        running = started_by(app.process.pid)
    app.process.send_signal(signal.SIGTERM)
    assert app.process.wait(120) == 0
    assert bool(running) == ON_LINUX
    assert not any(Path(f"/proc/{one}").exists() for one in running)


def started_by(process):
    """Return the processes that any thread of a process has started."""
    found = []
    for thread in Path(f"/proc/{process}/task").iterdir():
        with suppress(OSError):  # a thread that has answered ends
            found += (thread / "children").read_text().split()
    return found


TOLD_ELSEWHERE = """
import signal, threading, time
from pathlib import Path
from tracehunch.space.server import main

def late():
    while signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        time.sleep(0.1)
    time.sleep(1)
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    time.sleep(600)

threading.Thread(target=late, daemon=True).start()
main(Path("."))
"""


@needs_torch
@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="POSIX only")
def test_it_stops_when_another_thread_is_told(folder, tmp_path):
    environment = {**os.environ, "PORT": "0", "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    stopped = subprocess.run(
        [sys.executable, "-c", TOLD_ELSEWHERE], cwd=folder, env=environment, capture_output=True, timeout=300,
        check=False,
    )  # fmt: skip
    assert stopped.returncode == 0, stopped.stderr.decode()
