"""Which build of torch a Space gets, and which versions."""

from __future__ import annotations

import pytest

from tracehunch.errors import TracehunchError
from tracehunch.space import known, torch_build
from tracehunch.space.pins import requirements


def test_the_build_goes_with_the_hardware():
    assert torch_build("2.13.0", gpu=False, cuda=None) == "2.13.0+cpu"
    assert torch_build("2.13.0", gpu=True, cuda=None) == "2.13.0+cu126"
    assert torch_build("2.15.0", gpu=True, cuda="cu132") == "2.15.0+cu132"


@pytest.mark.parametrize(
    ("version", "gpu", "cuda", "said"),
    [
        ("2.13", False, None, "three numbers"),
        ("2.13.0+cpu", False, None, "without a local part"),
        ("2.13.0; rm -rf /", False, None, "no release"),
        ("2.6.0", True, None, "take 2.7 or newer"),
        ("1.13.1", False, None, "take 2.7 or newer"),
        ("2.15.0", True, None, "--cuda cu130"),
        ("2.13.0", False, "cu126", "this hardware has none"),
        ("2.13.0", True, "12.6", "cu126"),
        ("2.13.0", True, "cu126\n-r x", "names no build"),
    ],
)
def test_what_has_no_build_is_refused(version, gpu, cuda, said):
    with pytest.raises(TracehunchError, match=said):
        torch_build(version, gpu=gpu, cuda=cuda)


def test_an_installed_release_is_taken_and_a_working_copy_is_not(tmp_path, monkeypatch):
    for name, version, more in (
        ("click", "8.1.7", {}),
        ("rich", "14.1.0+local", {}),
        ("numpy", "2.0.1", {"direct_url.json": '{"url": "file:///x"}'}),
    ):
        info = tmp_path / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        for file, text in more.items():
            (info / file).write_text(text)
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    text = requirements("2.13.0+cpu", {}, header="x")
    assert "\nclick==8.1.7\n" in text
    assert "\nrich==15.0.0\n" in text  # the table's
    assert "\nnumpy==2.4.6\n" in text


def test_hardware_that_a_docker_space_cannot_have_is_refused_with_the_reason():
    assert known("a10g-small") == "a10g-small"
    with pytest.raises(TracehunchError, match="Gradio"):
        known("zero-a10g")
    with pytest.raises(TracehunchError, match="Jobs"):
        known("h200")
    with pytest.raises(TracehunchError, match="did you mean t4-small"):
        known("T4-smal")
