import builtins
import sys
from types import SimpleNamespace

import pytest

from tracehunch.capture import torch_env
from tracehunch.errors import CaptureError


def test_without_torch_every_machine_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(torch_env, "find_spec", lambda _: None)
    for wanted in ("auto", "cuda", "cpu"):
        with pytest.raises(CaptureError, match=r'pip install "tracehunch\[torch\]"'):
            torch_env.pick_machine(wanted)


def test_a_torch_that_does_not_load_says_why(monkeypatch):
    monkeypatch.setattr(torch_env, "find_spec", lambda _: object())
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    real = builtins.__import__

    def broken(name, *rest, **more):
        if name == "torch":
            raise OSError("libtorch_cpu.so: cannot open shared object file\nand more")
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", broken)
    with pytest.raises(
        CaptureError, match=r"cannot be loaded: libtorch_cpu.so: cannot open shared object file;"
    ):
        torch_env.import_torch()


def test_an_old_torch_is_refused_with_what_is_needed(monkeypatch):
    monkeypatch.setattr(torch_env, "find_spec", lambda _: object())
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(__version__="2.4.1+cu121"))
    with pytest.raises(CaptureError, match=r"2\.4\.1\+cu121 is too old: 2\.5 or newer"):
        torch_env.import_torch()


@pytest.mark.parametrize(
    ("cuda", "hip", "why"),
    [(None, None, "built without CUDA"), ("13.0", None, "driver"), (None, "7.0", "driver")],
)
def test_a_missing_gpu_is_told_by_its_reason(cuda, hip, why):
    torch = SimpleNamespace(
        __version__="2.13.0",
        cuda=SimpleNamespace(is_available=lambda: False),
        version=SimpleNamespace(cuda=cuda, hip=hip),
    )
    with pytest.raises(CaptureError, match=why):
        torch_env._gpu(torch)


def test_only_versions_that_are_there_are_written_to_a_trace():
    torch = SimpleNamespace(
        __version__="2.13.0+cpu",
        version=SimpleNamespace(git_version="abc", cuda=None, hip=None),
        backends=SimpleNamespace(cudnn=SimpleNamespace(is_available=lambda: False, version=lambda: 1)),
    )
    assert torch_env.versions(torch) == {"torch_version": "2.13.0+cpu", "torch_git_version": "abc"}


def test_the_profilers_own_messages_are_quiet_unless_asked_for(monkeypatch):
    pytest.importorskip("torch")
    monkeypatch.setenv("KINETO_LOG_LEVEL", "1")
    torch_env.import_torch()
    assert torch_env.os.environ["KINETO_LOG_LEVEL"] == "1"
