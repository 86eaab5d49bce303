from dataclasses import replace

import pytest

from tracehunch.errors import GuessError
from tracehunch.hardware import all_gpus
from tracehunch.predict.environment import Environment, environment, gpu_named
from tracehunch.predict.releases import releases


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("h200", "h200-sxm"),
        ("H200", "h200-sxm"),
        ("NVIDIA H200", "h200-sxm"),
        ("a100-80-sxm", "a100-80gb-sxm"),
        ("a100-80gb-sxm", "a100-80gb-sxm"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb-sxm"),
        ("rtx4090", "rtx-4090"),
        ("rtx-4090", "rtx-4090"),
        ("mi300x", "mi300x"),
        ("b200", "b200"),
    ],
)
def test_gpus_go_by_key_words_or_name(name, key):
    assert gpu_named(name).key == key


def test_every_key_names_its_gpu():
    for gpu in all_gpus():
        assert gpu_named(gpu.key) == gpu


def test_an_unknown_gpu_is_an_error_that_lists_the_known_ones():
    with pytest.raises(GuessError, match=r"GPU 'foo' is not known; use one of a10, a100-40gb"):
        environment("foo", "2.13")


def test_a_name_of_several_gpus_is_an_error_that_lists_them():
    with pytest.raises(GuessError, match="a100-80gb-pcie, a100-80gb-sxm"):
        environment("a100-80gb", "2.13")


@pytest.mark.parametrize("version", ["2.4", "2.4.1", "2.15", "3.0", "nightly", ""])
def test_an_unknown_version_is_an_error_that_says_which_are_known(version):
    with pytest.raises(GuessError, match=r"2\.5 to 2\.14"):
        environment("h200", version)


@pytest.mark.parametrize(
    ("torch", "cudnn", "cuda"),
    [
        ("2.9", 91002, (12, 8)),
        ("2.10", 91002, (12, 8)),
        ("2.9.1+cu130", 91300, (13, 0)),
        ("2.10.0+cu130", 91501, (13, 0)),  # newer than 9.15.0: cuDNN first
        ("2.14.0+cu126", 91002, (12, 6)),
        ("2.11", 91900, (13, 0)),
        ("2.12", 92000, (13, 0)),
        ("2.13", 92000, (13, 0)),
        ("2.14", 92400, (13, 0)),
    ],
)
def test_the_wheel_says_cudnn_and_cuda(torch, cudnn, cuda):
    env = environment("h200", torch)
    assert (env.cudnn, env.cuda) == (cudnn, cuda)
    assert env.compute_capability == (9, 0)


def test_what_is_given_comes_before_the_wheel():
    env = environment("h200", "2.11.0+cu128", 91501)
    assert (env.torch, env.micro, env.cuda, env.cudnn) == ((2, 11), 0, (12, 8), 91501)
    assert environment("h200", "2.14.0a0+git123").torch == (2, 14)


def test_older_wheels_are_not_known():
    env = environment("h200", "2.7")
    assert (env.cudnn, env.cuda) == (None, None)


def test_amd_gpus_have_an_architecture_and_no_cudnn():
    env = environment("mi300x", "2.13")
    assert (env.device, env.architecture, env.compute_capability) == ("rocm", "gfx942", None)
    assert env.cudnn is None


def test_a_device_alone_will_do():
    assert environment(torch="2.13", device="cpu").device == "cpu"
    assert environment(torch="2.13", compute_capability=(12, 1)).device == "cuda"


def test_contradictions_are_errors():
    with pytest.raises(GuessError, match="is no rocm device"):
        environment("h200", "2.13", device="rocm")
    with pytest.raises(GuessError, match="device 'tpu'"):
        environment(torch="2.13", device="tpu")
    with pytest.raises(GuessError, match="neither a GPU nor a device"):
        environment(torch="2.13")


def test_pins_come_before_flags():
    env = Environment(torch=(2, 13), enabled={"flash": False}, pinned=("flash",))
    assert env.is_enabled("flash")
    assert not env.is_enabled("math")
    assert replace(env, pinned=()).is_enabled("math")
    assert not replace(env, pinned=()).is_enabled("flash")


def test_environments_can_be_keys():
    one, other = environment("h200", "2.13"), environment("h200", "2.13")
    assert len({one, other, replace(one, env={"A": "1"})}) == 2


def test_releases_are_listed_oldest_first_with_their_sources():
    known = releases()
    assert list(known) == sorted(known)
    for version, release in known.items():
        assert release.torch == version
        assert release.source
        assert not release.exact or (release.cuda and release.cudnn)
