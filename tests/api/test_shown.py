import io
import json
import re
import subprocess
import sys

import pytest
from rich.console import Console

import tracehunch
from tracehunch import verdict as plain
from tracehunch.api.shown import Verdict, shown
from tracehunch.errors import GuessError, TracehunchError
from tracehunch.judge import examine
from tracehunch.report import json_report, terminal
from tracehunch.report.layout import View


@pytest.fixture(scope="module")
def seen(h200):
    claims = {"scope": "attn_fwd", "kernels": 5, "copies": 0, "flops": "> 1"}
    return tracehunch.check(claims, h200 / "seeds/naive.json.gz")


def test_print_writes_what_the_command_line_shows(seen, capsys):
    seen.print(width=80)
    text = capsys.readouterr().out
    assert text == terminal.render(seen, view=View(interactive=True), source=str(seen.trace_path))
    seen.print(width=80, all_findings=True, file=(file := io.StringIO()))
    assert "hidden-copy" in file.getvalue()
    assert capsys.readouterr().out == ""


def test_print_heeds_colour_and_what_the_stream_can_show(seen, monkeypatch):
    plain_file, coloured, ascii_file = io.StringIO(), io.StringIO(), io.TextIOWrapper(io.BytesIO(), "ascii")
    seen.verdict.print(file=plain_file)
    monkeypatch.setenv("FORCE_COLOR", "1")
    seen.verdict.print(file=coloured)
    monkeypatch.setenv("NO_COLOR", "1")
    seen.print(file=ascii_file)
    assert "\x1b" not in plain_file.getvalue()
    assert "\x1b[1;31merror\x1b[0m" in coloured.getvalue()
    ascii_file.flush()
    assert b"hidden-copy" in ascii_file.buffer.getvalue()


def test_a_verdict_tells_all_three_outcomes_in_every_form(seen):
    file = io.StringIO()
    Console(file=file, width=80, force_terminal=False).print(seen.verdict)
    for text in (str(seen.verdict), seen.verdict._repr_html_(), file.getvalue()):
        for word in (
            "copies",
            "kernels",
            "flops",
            "hidden-copy",
            "cannot tell",
            "held",
            "record_shapes=True",
        ):
            assert word in text
    assert repr(seen.verdict) == "<Verdict: 1 held, 1 surprise, 1 cannot tell>"
    whole = json.loads(json_report.render(seen))
    assert json.loads(seen.verdict.to_json())["verdict"]["held"] == whole["verdict"]["held"]


def test_rich_takes_the_width_it_has_and_parses_no_markup(seen):
    for width in (60, 120):
        file = io.StringIO()
        Console(file=file, width=width, force_terminal=True, color_system="standard").print(seen)
        lines = file.getvalue().splitlines()
        assert max(len(re.sub(r"\x1b\[[\d;]*m", "", line)) for line in lines) <= width
        assert any("\x1b[1" in line for line in lines)


def test_an_empty_verdict_equals_an_empty_verdict_of_either_kind():
    assert Verdict() == plain.Verdict()
    assert plain.Verdict() == Verdict()
    assert hash(Verdict()) == hash(Verdict())
    assert Verdict(cannot_tell=(plain.CannotTell("a", "b", "c"),)) != plain.Verdict()
    assert str(Verdict()) == "nothing was claimed"
    assert "nothing was claimed" in Verdict()._repr_html_()


def test_a_look_without_a_guess_shows_no_verdict(h200):
    seen = tracehunch.look(h200 / "seeds/naive.json.gz")
    assert "Verdict" not in str(seen)
    assert "Verdict" not in seen._repr_html_()
    assert shown(seen) is seen
    assert type(shown(examine(tracehunch.read(h200 / "seeds/naive.json.gz")))) is tracehunch.Look


def test_facts_are_read_by_scope_and_key(seen):
    scope = seen.scopes["attn_fwd"]
    assert (scope["kernels"], scope["copies"], scope.calls, scope.name) == (5, 1, 3, "attn_fwd")
    assert scope["gpu_time"] == scope["gpu_time_us"] == 1063.54
    assert scope["sdpa.backend"] == "none"
    assert isinstance(scope["dominant"], tuple)
    assert seen.scopes["step"].name == "ProfilerStep"
    assert seen.scopes["aten::matmul"]["kernels"] == 1
    assert list(seen.scopes) == ["attn_fwd", "ProfilerStep", "whole"]
    written = json.loads(seen.to_json())["scopes"][0]["facts"]
    assert {
        key: list(value) if isinstance(value, tuple) else value for key, value in scope.items()
    } == written
    assert len(scope) == len(list(scope)) == len(written)
    assert "'copies': 1" in repr(scope)


def test_a_fact_that_is_not_there_says_why(seen):
    scope = seen.scopes["attn_fwd"]
    assert scope.get("flops") is None
    assert "flops" not in scope
    with pytest.raises(KeyError, match="tensor shapes were not recorded; record with record_shapes=True"):
        _ = scope["flops"]
    with pytest.raises(GuessError, match="did you mean kernels"):
        scope.get("kernel")
    with pytest.raises(TracehunchError, match="did you mean attn_fwd"):
        _ = seen.scopes["attn_fw"]
    assert "nothing" not in seen.scopes
    assert "*" not in seen.scopes


def test_looking_and_showing_a_verdict_loads_no_torch(h200):
    path = str(h200 / "seeds/naive.json.gz")
    code = (
        f"import sys, tracehunch; seen = tracehunch.check({{'scope': '*', 'kernels': 5}}, {path!r});"
        "seen._repr_html_(), seen.verdict.to_json(), str(seen), seen.scopes['attn_fwd']['kernels'];"
        "tracehunch.profile, tracehunch.profiled, tracehunch.trace_ready('x', {'kernels': 1});"
        "sys.exit('torch' in sys.modules or 'rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
