"""``tracehunch run``: scripts run as users run them, each in a process of its own."""

import gzip
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tracehunch.cli import main

pytest.importorskip("torch")

TRAIN = """
import sys, torch
def train(steps, optimizers=1, micro=1):
    model = torch.nn.Linear(8, 8)
    each = [torch.optim.SGD(model.parameters(), lr=0.1) for _ in range(optimizers)]
    for _ in range(steps):
        for _ in range(micro):
            model(torch.ones(4, 8)).sum().backward()
        for one in each:
            one.step()
        model.zero_grad()
"""
SCRIPTS = {
    "plain": TRAIN + "train(8, micro=2); print('said', sys.argv[1:])",
    "turns": TRAIN + "import threading; threading.Thread(target=train, args=(9, 2)).start()",
    "raises": TRAIN + "train(5)\ntorch.nn.Linear(4, 4)(torch.ones(3, 5))",
    "forks": TRAIN
    + (
        "import os\ntrain(5)\npid = os.fork()\nif pid == 0: train(50); sys.exit(3)\n"
        "print('child', os.waitpid(pid, 0)[1] >> 8, flush=True); os._exit(9)"
    ),
    "terminated": TRAIN
    + "import os, signal, time; train(5); os.kill(os.getpid(), signal.SIGTERM); time.sleep(9)",
    "short": TRAIN + "train(3); sys.exit('no more')",
    "without": "import sys; print(sys.stdin.read().upper()); sys.stdout.close(); sys.exit(4)",
    "hushed": TRAIN + "import io; own, sys.stderr = sys.stderr, io.StringIO(); train(8)\n"
    "print(repr(sys.stderr.getvalue())); own.close()",
    "serves": (
        "import os, shutil, signal, torch\nmodel, loss = torch.nn.Linear(8, 8), torch.nn.MSELoss()\n"
        "os.mkdir('gone'); os.chdir('gone'); os.rmdir(os.getcwd())\n"
        "for _ in range(9): y = model(torch.ones(2, 8)); loss(y, y)\n"
        "os.kill(os.getpid(), signal.SIGINT)"
    ),
    "profiles": TRAIN
    + (
        "import tracehunch\n"
        "with tracehunch.profile('own') as p: train(3)\n"
        "with torch.profiler.profile() as q: train(3)\n"
        "print(p.trace_path.name, any(one.name == 'aten::addmm' for one in q.events())); train(9)"
    ),
    "endless": "import torch\nx = torch.ones(8, 8)\nfor _ in range(10**9 if __name__ == '__main__' else 0):\n"
    "    x = x + 1\n    if not torch.autograd.profiler._is_profiler_enabled: break",
    "compiled": (
        "import torch\nfrom torch._dynamo.utils import counters\n"
        "def train():\n"
        "    torch._dynamo.reset(); counters.clear()\n"
        "    layers = torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.Linear(8, 1)\n"
        "    layers[1].register_forward_hook(lambda *_: None)\n"
        "    model = torch.nn.Sequential(*layers); run = torch.compile(model, backend='aot_eager')\n"
        "    adam = torch.optim.AdamW(model.parameters())\n"
        "    for _ in range(8): run(torch.ones(4, 8)).sum().backward(); adam.step(); adam.zero_grad()\n"
        "    kinds = 'frames', 'graph_break', 'recompiles'\n"
        "    return [dict(counters[one]) for one in kinds], counters['stats']['unique_graphs']\n"
        "watched, name = train(), torch.nn.Module.__call__.__code__.co_name\n"
        "print(watched == train(), watched[1], name)"
    ),
    "workers": (
        "import multiprocessing, sys, torch\n"
        "from torch.utils.data import DataLoader\n"
        "def job(queue): queue.put((__name__, sys.argv[1:]))\n"
        "def main():\n"
        "    model = torch.nn.Linear(1, 1); sgd = torch.optim.SGD(model.parameters())\n"
        "    for x in DataLoader(torch.ones(8, 1), num_workers=1, multiprocessing_context='fork'):\n"
        "        model(x).sum().backward(); sgd.step()\n"
        "    spawn = multiprocessing.get_context('spawn'); queue = spawn.Queue()\n"
        "    child = spawn.Process(target=job, args=(queue,)); child.start()\n"
        "    print(*queue.get()); child.join()\n"
        "if __name__ == '__main__': main()"
    ),
}
OPTIONS = {
    "endless": ["--max-seconds", "0.2"],
    "turns": ["-o", "turns.html"],
    "hushed": ["-o", "hushed.md", "-t", "made/"],
}
LOOKS = {"plain", "turns", "hushed"}


def tracehunch(folder, *words, **more):
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "tracehunch", "run", *words],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=600, check=False, **more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("scripts")


@pytest.fixture(scope="module")
def ran(folder):
    """A function that returns how a script of SCRIPTS ended, and its trace's events; each runs once."""
    for name, text in SCRIPTS.items():
        (folder / f"{name}.py").write_text(text)

    def once(name):
        look = [] if name in LOOKS else ["--no-look"]
        options = [*look, *OPTIONS.get(name, [])]
        return tracehunch(folder, *options, f"{name}.py", "--skip", "x", input="some input")

    with ThreadPoolExecutor(2) as pool:
        done = dict(zip(SCRIPTS, pool.map(once, SCRIPTS), strict=True))
    return lambda name: (done[name], events(folder / f"tracehunch-{name}.json.gz"))


def events(path: Path):
    return json.loads(gzip.decompress(path.read_bytes()))["traceEvents"] if path.exists() else None


def count(trace, name):
    return Counter(event.get("name", "").partition("#")[0] for event in trace if event.get("ph") == "X")[name]


def test_optimizer_steps_are_recorded_and_looked_at(ran):
    done, trace = ran("plain")
    assert done.returncode == 0
    assert done.stdout == "said ['--skip', 'x']\n"  # and nothing of ours
    assert count(trace, "ProfilerStep") == 3
    assert count(trace, "aten::addmm") == 6  # two micro batches a step
    assert count(trace, "Optimizer.step") == 3
    assert "recorded 3 optimizer steps: tracehunch-plain.json.gz; the script goes on" in done.stderr
    assert "ProfilerStep" in done.stderr
    assert "\nNext: tracehunch " in done.stderr


def test_a_step_is_a_round_of_all_optimizers_also_in_a_thread_that_outlives_the_script(ran, folder):
    done, trace = ran("turns")
    assert done.returncode == 0
    assert (count(trace, "ProfilerStep"), count(trace, "Optimizer.step")) == (3, 6)
    assert (folder / "turns.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("name", "status"),
    [("raises", 1), ("forks", 9), ("terminated", -signal.SIGTERM)],
)
def test_a_broken_off_script_leaves_a_whole_trace_and_its_own_status(ran, name, status):
    done, trace = ran(name)
    assert done.returncode == status
    assert count(trace, "Optimizer.step") == 2  # of three that were wanted
    assert "recorded 2 optimizer steps (ended after 2 of 3 steps)" in done.stderr


def test_a_traceback_is_as_pythons(ran):
    done, _ = ran("raises")
    assert done.stderr.splitlines()[0] == "Traceback (most recent call last):"
    assert done.stderr.count(" in _wrapped_call_impl\n") == 1
    assert "/tracehunch/" not in done.stderr
    assert "RuntimeError: mat1 and mat2" in done.stderr


def test_too_few_steps_are_recorded_as_a_whole(ran):
    done, trace = ran("short")
    assert done.returncode == 1
    assert "no more" in done.stderr
    assert "the script as a whole (3 optimizer steps, too few with 2 skipped and 1 to warm up" in done.stderr
    assert count(trace, "Optimizer.step") == 2  # and not what came after the third, which warms up


def test_a_script_without_torch_runs_as_ever(ran):
    done, trace = ran("without")
    assert (done.returncode, done.stdout) == (4, "SOME INPUT\n")
    assert "nothing was recorded: the script did not import torch" in done.stderr
    assert trace is None


def test_what_a_script_puts_in_the_place_of_stderr_is_its_own_and_closing_it_loses_no_report(ran, folder):
    done, _ = ran("hushed")
    assert (done.returncode, done.stdout) == (0, "''\n"), done.stderr
    assert "recorded 3 optimizer steps: made/tracehunch-hushed.json.gz; the script goes on" in done.stderr
    assert "tracehunch-hushed.json.gz" in (folder / "hushed.md").read_text()


def test_forwards_of_the_outermost_model_are_steps_where_nothing_is_trained(ran):
    done, trace = ran("serves")  # interrupted, in a folder that is gone
    assert done.returncode == -signal.SIGINT
    assert "recorded 3 forwards" in done.stderr
    assert (count(trace, "ProfilerStep"), count(trace, "aten::addmm")) == (3, 3)


def test_what_takes_too_long_is_cut(ran):
    done, trace = ran("endless")
    assert done.returncode == 0
    assert "the script as a whole (cut after 0.2 s, see --max-seconds)" in done.stderr
    assert count(trace, "aten::add")


def test_a_profiler_of_the_scripts_own_goes_first(ran):
    done, trace = ran("profiles")
    assert (done.returncode, done.stdout) == (0, "own.json.gz True\n"), done.stderr
    assert "the script has a profiler of its own" in done.stderr
    assert trace is None


def test_children_are_neither_recorded_nor_broken(ran):
    done, trace = ran("forks")
    assert done.stdout == "child 3\n"
    assert done.stderr.count("recorded") == 1
    assert count(trace, "Optimizer.step") == 2
    done, trace = ran("workers")
    assert (done.returncode, done.stdout) == (0, "__mp_main__ ['--skip', 'x']\n")
    assert count(trace, "ProfilerStep") == 3


def test_compiled_code_notices_nothing(ran):
    done, trace = ran("compiled")
    assert done.stdout == "True 1 _wrapped_call_impl\n"
    assert count(trace, "ProfilerStep") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "no script given"),
        (("none.py",), "cannot run none.py: No such file or directory"),
        (("-m", "none.such"), "no module named none.such"),
        (("--format", "json", "s.py"), "needs -o FILE"),
        (("--no-look", "--fail-on", "note", "s.py"), "--no-look leaves nothing to report"),
        (("--guess", "none.toml", "s.py"), "none.toml"),
        (("-o", "none/r.md", "s.py"), "there is no folder none"),
        (("-t", "t.txt", "s.py"), "ends neither in .json nor in .json.gz"),
        (("-t", "s.py/t.json", "s.py"), "it is no folder"),
    ],
)
def test_usage_errors_come_before_the_script_runs(tmp_path, capsys, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.py").write_text("print('ran')")
    with pytest.raises(SystemExit) as stop:
        main(["run", *words])
    out, err = capsys.readouterr()
    assert (stop.value.code, out) == (2, "")
    assert said in err


def test_a_guess_is_checked_and_two_ranks_are_told_apart(tmp_path):
    (tmp_path / "ddp.py").write_text(
        "import os, torch, torch.distributed as dist\n"
        "where = 'file://' + os.path.abspath('meeting')\n"  # a port might be somebody else's
        "dist.init_process_group('gloo', where, rank=int(os.environ['RANK']), world_size=2)\n"
        "model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(8, 8))\n"
        "sgd = torch.optim.SGD(model.parameters())\n"
        "for _ in range(6): model(torch.ones(4, 8)).sum().backward(); sgd.step()\n"
        "dist.destroy_process_group()\n"
        "import time; time.sleep(1)"  # gloo's threads crash a process that ends while they tidy up
    )
    (tmp_path / "hunch.toml").write_text('[[guess]]\nscope = "step"\nleaf_ops = 1\n')
    launched = [
        subprocess.Popen(
            [sys.executable, "-m", "tracehunch", "run", "--guess", "hunch.toml", "-o", "v.json", "ddp.py"],
            cwd=tmp_path, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)},
        )
        for rank in (0, 1)
    ]  # fmt: skip
    (_, first), (_, second) = (one.communicate(timeout=600) for one in launched)
    assert [one.returncode for one in launched] == [1, 0], first + second  # rank 0 alone judges
    assert "leaf_ops in ProfilerStep is a surprise" in first
    assert "tracehunch:" not in second
    assert json.loads((tmp_path / "v.json").read_text())["verdict"]["surprises"]
    for rank in (0, 1):
        assert count(events(tmp_path / f"tracehunch-ddp-rank{rank}.json.gz"), "gloo:all_reduce")
