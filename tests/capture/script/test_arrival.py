import importlib
import sys

from tracehunch.capture.script.arrival import when_imported


def test_two_may_wait_for_one_module(tmp_path, monkeypatch):
    (tmp_path / "awaited.py").write_text("x = 1")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "awaited", raising=False)
    before = list(sys.meta_path)
    told = []
    for who in "ab":
        when_imported("awaited", lambda module, who=who: told.append((who, module.x)))
    importlib.import_module("awaited")
    assert sorted(told) == [("a", 1), ("b", 1)]
    assert sys.meta_path == before
