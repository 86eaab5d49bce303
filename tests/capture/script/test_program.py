"""What a program sees of itself is what Python would show it."""

import io
import json
import subprocess
import sys
import zipfile

import pytest

from tracehunch.capture.script import find_module, find_script, run, show
from tracehunch.errors import CaptureError

TELLS = """
import json, sys
seen = {name: str(globals()[name]) for name in ("__name__", "__file__", "__package__", "__doc__")}
seen["names"] = sorted(globals())
seen["spec"] = getattr(__spec__, "name", None)
seen["main"] = sys.modules["__main__"].__dict__ is globals()
json.dump([seen, sys.argv, sys.path[0]], open(sys.argv[1], "w"))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a script, a package and a zip file, the current one."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "script.py").write_text(TELLS)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    (tmp_path / "package" / "__main__.py").write_text(TELLS)
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as file:
        file.writestr("__main__.py", TELLS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["tracehunch"])
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    return tmp_path


@pytest.mark.parametrize(
    ("find", "name", "python"),
    [
        (find_script, "sub/script.py", ["sub/script.py"]),
        (find_script, "package", ["package"]),
        (find_script, "app.zip", ["app.zip"]),
        (find_module, "package", ["-m", "package"]),
        (find_module, "sub.script", ["-m", "sub.script"]),
    ],
)
def test_a_program_sees_what_python_shows(folder, find, name, python):
    assert run(find(name), ["ours.json"]).status == 0
    subprocess.run([sys.executable, *python, "theirs.json"], check=True, cwd=folder)
    ours, theirs = (json.loads((folder / f"{who}.json").read_text()) for who in ("ours", "theirs"))
    assert ours[1] == [theirs[1][0], "ours.json"]
    assert ours[0] == theirs[0]
    assert ours[2] == theirs[2]


def test_a_program_comes_from_standard_input_as_with_python(folder, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TELLS.encode())))
    assert run(find_script("-"), ["ours.json"]).status == 0
    subprocess.run([sys.executable, "-", "theirs.json"], input=TELLS.encode(), check=True, cwd=folder)
    ours, theirs = (json.loads((folder / f"{who}.json").read_text()) for who in ("ours", "theirs"))
    assert [ours[0], ours[2]] == [theirs[0], theirs[2]]
    assert ours[1] == ["-", "ours.json"]


@pytest.mark.parametrize(
    ("code", "status", "said"),
    [
        ("import sys; sys.exit()", 0, ""),
        ("import sys; sys.exit(7)", 7, ""),
        ("import sys; sys.exit(True)", 1, ""),
        ("import sys; sys.exit('no such thing')", 1, "no such thing\n"),
        ("raise KeyboardInterrupt", 130, "KeyboardInterrupt"),
        ("def f():\n    raise ValueError('boom')\nf()", 1, "line 2, in f"),
    ],
)
def test_the_exit_status_is_pythons(folder, capsys, code, status, said):
    (folder / "s.py").write_text(code)
    assert run(find_script("s.py"), []).status == status
    err = capsys.readouterr().err
    assert said in err
    assert "tracehunch" not in err.replace(str(folder), "")


@pytest.mark.usefixtures("folder")
def test_what_is_not_there_is_told():
    for find, name, said in (
        (find_script, "none.py", "No such file"),
        (find_script, "torchrun", "torchrun --no-python tracehunch run"),
        (find_script, "sub", "no __main__.py"),
        (find_module, "sub", "has no __main__"),
        (find_module, ".sub", "no module named"),
        (find_module, "no.such.module", "no module named"),
        (find_module, "script.py", "without .py"),
    ):
        with pytest.raises(CaptureError, match=said):
            find(name)


@pytest.mark.parametrize(
    ("file", "text", "name", "said"),
    [
        ("bad.py", "x = (", "bad.py", "SyntaxError"),
        ("broken_0/__init__.py", "x = (", "broken_0.part", "SyntaxError"),
        ("broken_1/__init__.py", "import none_such_1", "broken_1", "none_such_1"),
        ("broken_2/__init__.py", "int('no')", "broken_2.part", "ValueError"),
    ],
)
def test_what_is_raised_before_a_program_runs_is_shown_as_python_shows_it(  # noqa: PLR0917  # of one table
    folder, capsys, file, text, name, said
):
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_text(text)
    (folder / file).with_name("part.py").touch()
    find = find_script if name.endswith(".py") else find_module
    with pytest.raises((SyntaxError, ImportError, ValueError)) as failure:
        find(name)
    show(failure.value)
    err = capsys.readouterr().err
    assert said in err
    assert str(folder / file) in err
    assert "tracehunch/capture" not in err
