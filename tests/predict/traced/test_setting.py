import pytest

from tracehunch.errors import GuessError
from tracehunch.hardware import find_gpu
from tracehunch.predict.traced.setting import Asked, setting_of

H200 = "h200/ops/gqa_auto"


@pytest.fixture
def setting(tree_of):
    def make(what=H200, place="gpu", asked=None, **header):
        return setting_of(tree_of(what, **header).trace, place, asked=asked)

    return make


def test_without_a_version_it_is_any_whose_wheels_have_the_cuda_of_the_file(setting):
    found = setting()
    assert [env.torch_name for env in found.envs] == ["2.9", "2.10", "2.11", "2.12", "2.13", "2.14"]
    assert [env.cudnn for env in found.envs] == [91300, 91501, 91900, 92000, 92000, 92400]
    assert (found.hardware, found.sure) == ("NVIDIA H200", False)
    assert found.torch == "not recorded: one of 2.9 to 2.14, whose wheels have CUDA 13.0"
    assert {env.compute_capability for env in found.envs} == {(9, 0)}
    older = setting(cuda_runtime_version=12040)
    assert [env.torch_name for env in older.envs] == ["2.5", "2.6"]
    unheard_of = setting(cuda_runtime_version=11030)
    assert [env.torch_name for env in unheard_of.envs] == ["2.9", "2.10", "2.11", "2.12", "2.13", "2.14"]


def test_a_recorded_version_is_the_one(setting):
    found = setting(torch_version="2.10.0+cu128")
    (env,) = found.envs
    assert (env.torch, env.micro, env.cuda, env.cudnn) == ((2, 10), 0, (12, 8), 91002)
    assert (found.sure, found.torch, found.cudnn_recorded) == (True, "2.10.0+cu128, as recorded", False)
    (env,) = setting(torch_version="2.10.0", cudnn_version="91501").envs
    assert (env.cuda, env.cudnn) == ((13, 0), 91501)  # the runtime's; as recorded
    assert setting(torch_version="2.10.0", cudnn_version="91501").cudnn_recorded


def test_what_the_user_says_goes_first(setting):
    asked = Asked(torch="2.13", cudnn=91002, gpu=find_gpu("NVIDIA A100-SXM4-80GB"))
    found = setting(asked=asked, torch_version="2.10.0")
    (env,) = found.envs
    assert (env.torch, env.cudnn, env.compute_capability) == ((2, 13), 91002, (8, 0))
    assert (found.hardware, found.torch) == ("A100 80GB SXM (as given)", "2.13, as given")


def test_a_version_without_rules_cannot_be_told_unless_the_user_gave_it(setting):
    found = setting(torch_version="2.4.1")
    assert found.envs == ()
    assert "2.4.1" in found.unknown
    with pytest.raises(GuessError, match=r"2\.4\.1"):
        setting(asked=Asked(torch="2.4.1"))


def test_flags_and_variables_that_were_recorded_count(setting):
    said = {
        "flags": {"sdp_cudnn": "False", "sdp_flash": "True", "deterministic": "True"},
        "variables": {"TORCH_CUDNN_SDPA_DEPRIORITIZED": "1"},
    }
    for env in setting(tracehunch_environment=said).envs:
        assert dict(env.enabled) == {"cudnn": False}
        assert env.deterministic
        assert env.env["TORCH_CUDNN_SDPA_DEPRIORITIZED"] == "1"


def test_other_hardware(setting, document):
    assert {env.device for env in setting("cpu/mha", place="cpu").envs} == {"cpu"}
    assert setting(place=None).unknown == "the trace does not show what the call ran on"
    nameless = setting(deviceProperties=[])
    assert (nameless.envs, nameless.unknown) == ((), "the trace does not name its GPU: give --gpu")
    amd = {
        "id": 0,
        "name": "AMD Instinct MI300X",
        "totalGlobalMem": 206141652992,
        "numSms": 304,
        "warpSize": 64,
    }
    assert {(env.device, env.architecture) for env in setting(deviceProperties=[amd]).envs} == {
        ("rocm", "gfx942")
    }
    of_tomorrow = {"id": 0, "name": "NVIDIA X999", "computeMajor": 11, "computeMinor": 0}
    known = setting(deviceProperties=[of_tomorrow]).envs[-1]
    assert (known.gpu, known.compute_capability) == (None, (11, 0))
    both = [
        *document(H200)["deviceProperties"],
        {"id": 1, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8},
    ]
    assert "several kinds of GPU" in setting(deviceProperties=both).unknown


def test_the_gpu_of_the_call_counts_where_there_are_several(tree_of, document):
    a100 = {"id": 1, "name": "NVIDIA A100-SXM4-80GB", "computeMajor": 8, "computeMinor": 0}
    both = [*document(H200)["deviceProperties"], a100]
    trace = tree_of(H200, deviceProperties=both).trace
    assert setting_of(trace, "gpu", 0).envs[0].compute_capability == (9, 0)
    assert setting_of(trace, "gpu", 1).envs[0].compute_capability == (8, 0)
