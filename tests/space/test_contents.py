"""The files of a Space: what the Hub, Docker and Dev Mode ask of them."""

from __future__ import annotations

import compileall
import json
import re
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import tracehunch
from tracehunch.errors import TracehunchError
from tracehunch.space import HARDWARE, Space, contents

PACKAGE = Path(tracehunch.__file__).parent
DEV_MODE = {"bash", "curl", "wget", "procps", "git", "git-lfs"}
COLOURS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
ON_LINUX = {"platform_system": "Linux", "sys_platform": "linux", "python_version": "3.12", "extra": ""}


def files(title="Attention", hardware="t4-small", torch="2.13.0+cu126", **more):
    made = contents(Space(title, hardware, torch, "1.2.3", ("--seq", "64"), **more))
    return {path: data.decode() for path, data in made.items() if not path.startswith("tracehunch/")}


@pytest.fixture(scope="module")
def own():
    made = contents(Space("Attention", "cpu-basic", "2.13.0+cpu", "1.2.3"))
    return {path: data for path, data in made.items() if path.startswith("tracehunch/")}


# README


def front_matter(text):
    _, block, _ = text.split("---\n", 2)
    return {key: json.loads(value) for key, _, value in (line.partition(": ") for line in block.splitlines())}


def test_front_matter_says_what_a_docker_space_needs():
    said = front_matter(files(title='My "quoted": #1 — é')["README.md"])
    assert said["title"] == 'My "quoted": #1 — é'
    assert said["sdk"] == "docker"
    assert said["app_port"] == 7860
    assert {said["colorFrom"], said["colorTo"]} <= COLOURS
    assert not said["emoji"].isascii()
    assert len(said["short_description"]) <= 60  # the Hub refuses more
    assert said["suggested_hardware"] == "t4-small"


@pytest.mark.skipif(find_spec("yaml") is None, reason="reads YAML with PyYAML")
def test_front_matter_is_yaml_that_says_the_same():
    import yaml  # noqa: PLC0415  # only where it is installed

    text = files(title="yes: [no], *x & 'y' \\ \"z\"")["README.md"]
    assert yaml.safe_load(text.split("---\n")[1]) == front_matter(text)


@pytest.mark.skipif(find_spec("huggingface_hub") is None, reason="asks huggingface_hub")
def test_the_hubs_own_library_reads_it_and_knows_the_hardware():
    from huggingface_hub import SpaceCard, SpaceHardware  # noqa: PLC0415  # only where it is installed

    card = SpaceCard(files()["README.md"])
    assert (card.data.sdk, card.data.app_port, card.data.title) == ("docker", 7860, "Attention")
    gradio_only = {"zero-a10g"}
    assert set(HARDWARE) == {one.value for one in SpaceHardware} - gradio_only


@pytest.mark.parametrize("title", ["", "  ", "two\nlines", "bell\a", "sep\u2028arated"])
def test_a_title_that_cannot_be_shown_is_refused(title):
    with pytest.raises(TracehunchError, match="--title"):
        files(title=title)


def test_readme_says_what_runs_and_with_what():
    text = files()["README.md"]
    assert "tracehunch attention --seq 64" in text
    assert "2.13.0+cu126" in text
    assert "t4-small (T4)" in text
    assert "$" not in text  # nothing left to fill in


# Dockerfile


def instructions(text):
    joined = re.sub(r"\\\n", " ", re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE))
    return [tuple(line.split(None, 1)) for line in joined.splitlines() if line.strip()]


@pytest.fixture
def docker():
    return instructions(files()["Dockerfile"])


def test_dockerfile_installs_what_dev_mode_needs(docker):
    (install,) = [rest for name, rest in docker if name == "RUN" and "apt-get install" in rest]
    words = install.split("apt-get install")[1].split("&&")[0].split()
    assert set(words) >= DEV_MODE
    assert install.index("apt-get update") < install.index("apt-get install")


def test_dockerfile_is_based_on_debian(docker):
    assert docker[0][0] == "FROM"
    assert re.fullmatch(r"python:3\.\d+-slim-bookworm", docker[0][1])


def test_dockerfile_puts_the_code_under_app_owned_by_uid_1000(docker):
    assert ("WORKDIR", "/app") in docker
    copies = [rest for name, rest in docker if name in ("COPY", "ADD")]
    assert copies
    assert all(rest.startswith("--chown=1000:1000 ") and "/app" in rest for rest in copies)
    assert ("RUN", "chown 1000:1000 /app") in docker  # WORKDIR makes it as root
    assert any(name == "RUN" and re.search(r"useradd .*--uid 1000", rest) for name, rest in docker)


def test_dockerfile_ends_as_that_user_with_a_command_on_the_port(docker):
    assert [name for name, _ in docker[-3:]] == ["USER", "EXPOSE", "CMD"]
    assert docker[-3][1] == "1000"
    assert docker[-2][1] == "7860"
    assert json.loads(docker[-1][1]) == ["python", "app.py"]
    assert "app.py" in files()


def test_dockerfile_builds_without_a_gpu(docker):
    assert not any("nvidia-smi" in rest or "cuda.is_available" in rest for _, rest in docker)


def test_gzip_files_go_through_lfs_as_the_hub_wants_binary_files():
    assert any(line.startswith("*.gz filter=lfs") for line in files()[".gitattributes"].splitlines())


# requirements


def pins(text):
    return dict(
        line.split("==")
        for line in text.splitlines()
        if line and not line.startswith(("#", "--extra-index-url"))
    )


@pytest.mark.parametrize(
    ("hardware", "torch", "index"), [("cpu-basic", "2.13.0+cpu", "cpu"), ("l4x1", "2.11.0+cu130", "cu130")]
)
def test_every_requirement_is_one_version_and_torch_the_one_asked_for(hardware, torch, index):
    text = files(hardware=hardware, torch=torch)["requirements.txt"]
    assert f"--extra-index-url https://download.pytorch.org/whl/{index}\n" in text
    assert pins(text)["torch"] == torch
    assert all(re.fullmatch(r"[\d.]+(\+\w+)?", version) for version in pins(text).values())


@pytest.mark.skipif(find_spec("torch") is None, reason="asks the installed torch what it needs")
def test_nothing_that_is_needed_is_left_out_or_of_a_version_that_is_not_allowed():
    pinned = pins(files(hardware="cpu-basic", torch="2.13.0+cpu")["requirements.txt"])
    waiting, seen = ["tracehunch", "torch"], set()
    while waiting:
        name = waiting.pop()
        for line in distribution(name).requires or []:
            need = Requirement(line)
            if need.marker is not None and not need.marker.evaluate(ON_LINUX):
                continue
            key = canonicalize_name(need.name)
            assert need.specifier.contains(pinned[key]), f"{name} needs {line}, pinned is {pinned[key]}"
            if key not in seen:
                seen.add(key)
                waiting.append(key)
    assert seen | {"torch"} == set(pinned)


def test_from_pypi_the_space_carries_no_files_but_a_pin():
    made = contents(Space("Attention", "cpu-basic", "2.13.0+cpu", "1.2.3", from_pypi=True))
    assert not any(path.startswith("tracehunch/") for path in made)
    assert pins(made["requirements.txt"].decode())["tracehunch"] == "1.2.3"


# tracehunch itself


def test_its_own_files_are_those_of_the_package(own):
    there = {
        f"tracehunch/{path.relative_to(PACKAGE).as_posix()}": path
        for path in PACKAGE.rglob("*")
        if path.is_file() and path.suffix != ".pyc" and not path.name.startswith(".")
    }
    assert {path for path in own if path != "tracehunch/LICENSE"} == set(there)
    assert all(own[path] == file.read_bytes() for path, file in there.items())


def test_its_own_files_are_free_of_bytecode_and_tests(own):
    assert not any("__pycache__" in path or path.endswith(".pyc") for path in own)
    assert not any("/test_" in path or "/tests/" in path for path in own)


def test_the_app_is_python(tmp_path):
    (tmp_path / "app.py").write_text(files()["app.py"])
    assert compileall.compile_file(tmp_path / "app.py", quiet=2)
