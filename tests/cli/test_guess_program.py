"""``tracehunch guess module:function``: a whole program, guessed without a GPU, in every format."""

from __future__ import annotations

import json
import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tracehunch.cli import main
from tracehunch.guess.hunch import parse_hunch

if TYPE_CHECKING:
    from collections.abc import Callable

torch = pytest.importorskip("torch")

EXAMPLE = Path(__file__).parents[2] / "examples" / "guess_model.py"
H200 = ("--gpu", "h200", "--torch", "2.11", "--cudnn", "91900")
PROGRAM = """
import torch
import torch.nn.functional as F

def sdpa():
    q = torch.randn(2, 8, 256, 64, dtype=torch.bfloat16)
    return F.scaled_dot_product_attention, (q, q, q), {"is_causal": True}

def branching():
    x = torch.randn(8)
    def run():
        y = x * 2
        if y.sum() > 0:
            y = y + 1
        return y
    return run

def inspecting():
    import inspect, sys
    inspect.getframeinfo(sys._getframe())  # every loaded module is asked for its file
    inspect.getmodule(compile("0", "nowhere", "eval"))
    return lambda: torch.zeros(8) * 2

def hiding():
    import os
    hidden = [os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES")]
    def run():
        print("hidden", hidden)
        return torch.zeros(8) * 2
    return run

def talking():
    def run():
        print("from the program")
        return torch.ones(3) + 1
    return run

def broken():
    raise ValueError("no such checkpoint")

def nothing():
    return 3

def misfit():
    return torch.nn.Linear(4, 4), (torch.randn(2, 5),)

def training():
    net = torch.nn.Sequential(*[torch.nn.Linear(64, 64) for _ in range(16)])
    x = torch.randn(8, 64)
    def step():
        loss = net(x).sum()
        loss.backward()
        return loss.item()
    return step
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[Any, str, str]]:
    """Run the command line in this process: (exit code, stdout, stderr)."""

    def _run(*args: object) -> tuple[Any, str, str]:
        with pytest.raises(SystemExit) as stop:
            main([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return _run


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module in the current folder; its name differs by test, as imported modules stay."""
    name = f"program_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(PROGRAM)
    monkeypatch.chdir(tmp_path)
    return name


def test_json_has_the_promised_keys_and_adds_up(run: Any) -> None:
    code, out, _ = run("guess", f"{EXAMPLE}:forward", *H200, "--format", "json")
    assert code == 0
    made = json.loads(out)
    totals = made["totals"]
    for key in ("kernels", "copies", "memsets", "gpu_time_us", "low_us", "high_us", "cpu_time_us", "bound"):
        assert key in totals
    assert totals["low_us"] < totals["gpu_time_us"] < totals["high_us"]
    for key in ("kernels", "copies", "memsets"):
        assert sum(row[key] for row in made["ops"]) == totals[key]
    assert {"op", "module", "calls", "gpu_time_us"} <= made["ops"][0].keys()
    copying = [row for row in made["ops"] if row["op"] == "aten::copy_" and row["copies"]]
    assert sum(row["copies"] for row in copying) == 4  # masked_fill clones the scores of each block
    assert made["findings"][0]["id"] == "unfused-attention"
    assert made["cannot_tell"] == []


def test_terminal_report_ends_with_what_to_type(run: Any) -> None:
    code, out, _ = run("guess", f"{EXAMPLE}:forward", *H200)
    assert code == 0
    assert all(len(line) <= 80 for line in out.splitlines()[:-1])
    assert "0.mlp" in out
    assert out.rstrip().splitlines()[-1].startswith("Next: tracehunch guess ")


def test_hunch_reads_back(run: Any, program: str, tmp_path: Path) -> None:
    path = tmp_path / "hunch.toml"
    assert run("guess", f"{program}:sdpa", *H200, "-o", path, "--scope", "attention")[0] == 0
    claims = {claim.key: claim.expected for claim in parse_hunch(path.read_text()).guess.claims}
    assert (claims["kernels"], claims["copies"], claims["sdpa.backend"]) == (1, 0, "cudnn")
    assert {table["scope"] for table in tomllib.loads(path.read_text())["guess"]} == {"attention"}


def test_hunch_knows_what_is_foreseen(run: Any, program: str, tmp_path: Path) -> None:
    """A wait and a host that is behind are no news then."""
    path = tmp_path / "hunch.toml"
    assert run("guess", f"{program}:training", *H200, "-o", path)[0] == 0
    known = parse_hunch(path.read_text()).guess.known
    assert {"overhead-bound in step", "sync-stall in step: aten::item x1"} <= set(known)


def test_counts_that_are_not_sure_are_ranges_in_every_format(run: Any, program: str, tmp_path: Path) -> None:
    """Those of a hunch.toml: what launches with another version of PyTorch was not seen."""
    path = tmp_path / "hunch.toml"
    newer = ("--gpu", "h200", "--torch", "2.13")
    run("guess", f"{program}:training", *newer, "-o", path)
    claimed = {one.key: one.expected for one in parse_hunch(path.read_text()).guess.claims}
    low, high = claimed["kernels"]
    totals = json.loads(run("guess", f"{program}:training", *newer, "--format", "json")[1])["totals"]
    assert totals["ranges"]["kernels"] == [low, high]
    assert low < totals["kernels"] < high
    said = f"{low} to {high} kernels ({totals['kernels']}), "
    for form in ("terminal", "markdown", "html"):
        out = run("guess", f"{program}:training", *newer, "--format", form)[1]
        assert said in out.replace("\\", ""), form


def test_pages_are_written(run: Any, program: str, tmp_path: Path) -> None:
    for name in ("guess.html", "guess.md"):
        assert run("guess", f"{program}:sdpa", *H200, "-o", tmp_path / name)[0] == 0
    assert b"cudnn" in (tmp_path / "guess.html").read_bytes()
    assert "### SDPA" in (tmp_path / "guess.md").read_text()


def test_branch_on_a_value_cannot_be_told(run: Any, program: str) -> None:
    code, out, _ = run("guess", f"{program}:branching", *H200, "--format", "json")
    made = json.loads(out)
    assert code == 0
    assert made["totals"]["at_least"]
    assert made["cannot_tell"][0]["line"] == f"{program}.py:13"
    assert "--values" in made["cannot_tell"][0]["remedy"]
    assert run("guess", f"{program}:branching", *H200, "--values")[0] == 0


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("{}:broken", "no such checkpoint"),
        ("{}:nothing", "returned an int;"),
        ("{}:misfit", "got [2, 5] X [4, 4]; run it by itself"),
        ("{}:sdp", "did you mean sdpa"),
        ("no_such_module:make", "no_such_module"),
    ],
)
def test_what_cannot_be_run_is_one_line(run: Any, program: str, target: str, said: str) -> None:
    code, out, err = run("guess", target.format(program), *H200)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.strip().splitlines()) <= 2


def test_a_gpu_is_asked_for_and_torch_is_the_installed(run: Any, program: str) -> None:
    code, _, err = run("guess", f"{program}:sdpa")
    assert code == 2
    assert "--gpu" in err
    assert f"guess {program}:sdpa --help" in err
    made = json.loads(run("guess", f"{program}:sdpa", "--gpu", "h200", "--format", "json")[1])
    assert torch.__version__.startswith(made["environment"]["torch"])


@pytest.mark.parametrize("compiled", [(), ("--compile",)], ids=["eager", "compiled"])
def test_gpus_of_this_machine_are_hidden_meanwhile(
    run: Any, program: str, compiled: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A driver that is not told so would take memory on a GPU that another job fills."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    status, _, said = run("guess", f"{program}:hiding", *H200, *compiled)
    assert status == 0, said
    assert "hidden ['', '']" in said
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1"
    assert "HIP_VISIBLE_DEVICES" not in os.environ


def test_every_module_can_be_inspected_while_a_program_is_compiled(run: Any, program: str) -> None:
    """Libraries look through sys.modules when they are imported."""
    status, out, said = run("guess", f"{program}:inspecting", *H200, "--compile")
    assert status == 0, said
    assert "inspecting" in out
