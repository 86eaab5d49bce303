"""What users import, and that importing it costs nothing until it is used."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import tracehunch
from tracehunch import api
from tracehunch.guess import Guess
from tracehunch.guess.claims import claims_from_mapping

HEAVY = {"torch", "numpy", "msgspec", "rich", "click"}


def loaded_by(code):
    """Which heavy modules are loaded after some code, in a process of its own."""
    command = [sys.executable, "-c", f"{code}\nimport sys\nprint(*sys.modules)"]
    done = subprocess.run(command, capture_output=True, check=True, text=True)
    return HEAVY & set(done.stdout.split())


def test_importing_the_package_loads_nothing_heavy():
    assert loaded_by("import tracehunch; dir(tracehunch); tracehunch.__version__") == set()


def test_the_test_above_can_fail():
    assert loaded_by("import tracehunch; tracehunch.Claim") >= {"numpy", "msgspec"}
    assert "click" in loaded_by("import click")


def test_reading_a_trace_loads_neither_torch_nor_what_only_reports_need(h200):
    path = str(h200 / "seeds/naive.json.gz")
    assert loaded_by(f"import tracehunch; tracehunch.look({path!r})") == {"numpy", "msgspec"}


def test_every_public_name_is_there_and_no_other():
    assert len(tracehunch.__all__) == len(set(tracehunch.__all__))
    for name in tracehunch.__all__:
        assert getattr(tracehunch, name) is not None
    assert set(tracehunch.__all__) <= set(dir(tracehunch))
    assert set(api.__all__) <= set(tracehunch.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = tracehunch.nothing


def test_the_version_is_the_one_that_is_packaged():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
    assert tracehunch.__version__ == project["version"]


def test_look_takes_a_path_or_a_trace_and_guesses(h200):
    path = h200 / "seeds/naive.json.gz"
    guess = Guess(claims_from_mapping("attn_fwd", {"kernels": 5, "copies": 0}))
    for source in (path, str(path), tracehunch.read(path)):
        look = tracehunch.look(source, [guess])
        assert [held.claim.key for held in look.verdict.held] == ["kernels"]
        assert [surprise.claim.key for surprise in look.verdict.surprises] == ["copies"]
    assert tracehunch.look(path).facts.scope("attn_fwd").value("kernels") == 5


def test_check_takes_a_file_or_a_guess(h200, tmp_path):
    path, hunch = h200 / "seeds/naive.json.gz", tmp_path / "hunch.toml"
    hunch.write_text('[[guess]]\nscope = "attn_fwd"\nkernels = 5\n')
    assert len(tracehunch.check(hunch, path).verdict.held) == 1
    assert len(tracehunch.check(str(hunch), path).verdict.held) == 1
    assert len(tracehunch.check(tracehunch.guess_from(path), path).verdict.surprises) == 0


def test_the_steps_are_public_too(h200):
    facts = tracehunch.measure(tracehunch.link(tracehunch.read(h200 / "seeds/naive.json.gz")))
    assert facts.scope("attn_fwd").value("copies") == 1


def test_what_users_print_is_short(h200):
    look = tracehunch.look(str(h200 / "seeds/naive.json.gz"))
    assert repr(look) == "<Look of naive.json.gz: 23 GPU activities, 2 findings>"
    assert repr(look.facts) == "<Facts of naive.json.gz: 3 scopes>"
    assert repr(look.facts.tree) == "<Tree of naive.json.gz: 3 scopes>"
    assert repr(look.facts.tree.trace) == "<Trace of naive.json.gz: 277 events, 23 GPU activities>"
    assert repr(look.facts.scope("attn_fwd")).startswith("<ScopeFacts of attn_fwd: 3 calls, ")


def test_dir_lists_the_public_names_only():
    assert dir(tracehunch) == sorted(tracehunch.__all__)
