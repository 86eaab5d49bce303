"""The environment in a line or two."""

from tracehunch.report.environment_text import environment_lines
from tracehunch.trace.model import Environment


def lines(**groups):
    return dict(environment_lines(Environment(**groups)))


def test_nothing_known_is_no_line():
    assert lines() == {}
    assert lines(versions={"torch": "2.11.0"}, flags={"sdp_flash": "True"}) == {}


def test_versions_and_clocks():
    versions = {"torch": "2.11.0", "cuda": "13.0", "cuda_runtime": "13.0", "cuda_driver": "13.0",
                "driver": "580.95.05", "cudnn": "9.19.0", "triton": "3.4.0"}  # fmt: skip
    machine = {"sm_clock_mhz": 1410, "sm_clock_max_mhz": 1980, "power_limit_w": 700}
    assert lines(versions=versions, machine=machine) == {
        "software": "CUDA 13.0, driver 580.95.05, cuDNN 9.19.0, Triton 3.4.0, SM clock 1,410 of 1,980 MHz, "
        "power limit 700 W"
    }


def test_a_runtime_that_is_not_the_one_torch_was_built_for_is_told():
    assert lines(versions={"cuda": "12.8", "cuda_runtime": "13.0"}) == {
        "software": "CUDA 12.8, CUDA runtime 13.0"
    }
    assert lines(versions={"hip_runtime": "6.4.1", "hip_driver": "6.4.1"}) == {
        "software": "HIP runtime 6.4.1"
    }


def test_only_settings_that_are_not_the_usual_ones():
    flags = {"sdp_flash": "False", "cudnn_allow_tf32": "True", "matmul_allow_tf32": "True"}
    assert lines(flags=flags, variables={"CUDA_LAUNCH_BLOCKING": "1"}) == {
        "settings": "sdp_flash False, matmul_allow_tf32 True and CUDA_LAUNCH_BLOCKING=1"
    }


def test_hostile_text_is_harmless():
    (text,) = lines(variables={"TORCH_X": "\x1b[31m"}).values()
    assert text == "TORCH_X=\\x1b[31m"
