"""The folder: whole or not at all, and over nothing that somebody else wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracehunch.errors import TracehunchError
from tracehunch.space import write

ONE = {"app.py": b"one", "tracehunch/a.py": b"a", "tracehunch/deep/b.py": b"b"}
TWO = {"app.py": b"two", "tracehunch/c.py": b"c"}


def there(folder):
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }
    found.pop(".tracehunch-space.json", None)
    return found


@pytest.fixture
def folder(tmp_path):
    write(tmp_path / "space", ONE, force=False)
    return tmp_path / "space"


def test_a_new_folder(folder):
    assert there(folder) == ONE
    assert [one.name for one in folder.parent.iterdir()] == ["space"]


def test_an_empty_folder_and_one_that_is_a_clone(tmp_path):
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_bytes(b"ref")
    write(tmp_path, ONE, force=False)
    write(tmp_path, TWO, force=True)
    assert there(tmp_path) == {**TWO, ".git/HEAD": b"ref"}


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_of_somebody_else_stays_as_it_is(tmp_path, force):
    (tmp_path / "notes.txt").write_bytes(b"mine")
    with pytest.raises(TracehunchError, match=r"not empty.*notes\.txt"):
        write(tmp_path, ONE, force=force)
    assert there(tmp_path) == {"notes.txt": b"mine"}


def test_its_own_space_is_written_again_only_by_force(folder):
    with pytest.raises(TracehunchError, match="--force"):
        write(folder, TWO, force=False)
    assert there(folder) == ONE
    (folder / "tracehunch" / "__pycache__").mkdir()
    (folder / "tracehunch" / "__pycache__" / "a.pyc").write_bytes(b"x")  # as running the app leaves behind
    write(folder, TWO, force=True)
    assert there(folder) == TWO


def test_force_spares_what_was_changed_added_or_linked(folder):
    (folder / "app.py").write_bytes(b"edited")
    with pytest.raises(TracehunchError, match=r"app\.py: it is not as it was written"):
        write(folder, TWO, force=True)
    (folder / "app.py").write_bytes(b"one")
    (folder / "mine.txt").write_bytes(b"mine")
    with pytest.raises(TracehunchError, match=r"mine\.txt"):
        write(folder, TWO, force=True)
    (folder / "mine.txt").unlink()
    (folder / "linked").symlink_to(folder.parent, target_is_directory=True)
    with pytest.raises(TracehunchError, match="linked"):
        write(folder, TWO, force=True)
    assert (folder / "app.py").read_bytes() == b"one"


@pytest.mark.parametrize("fails_at", range(1, 7))
def test_a_move_that_fails_leaves_the_old_space_whole(folder, monkeypatch, fails_at):
    moved, rename = [], Path.rename

    def failing(self, target):
        moved.append(self)
        if len(moved) == fails_at:
            raise OSError(28, "No space left on device")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", failing)
    with pytest.raises(TracehunchError, match="No space left"):
        write(folder, TWO, force=True)
    monkeypatch.undo()
    assert there(folder) == ONE
    write(folder, TWO, force=True)  # and it still is a Space of ours
    assert there(folder) == TWO


def test_a_file_or_a_place_that_cannot_be_is_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    with pytest.raises(TracehunchError, match="no folder"):
        write(tmp_path / "file", ONE, force=True)
    with pytest.raises(TracehunchError, match="cannot write"):
        write(tmp_path / "missing" / "space", ONE, force=False)
    assert there(tmp_path) == {"file": b"x"}
