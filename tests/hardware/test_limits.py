"""What an SM holds."""

import pytest

from tracehunch.hardware import limits_of, sm_limits

H200 = {
    "name": "NVIDIA H200",
    "computeMajor": 9,
    "computeMinor": 0,
    "maxThreadsPerMultiprocessor": 2048,
    "regsPerMultiprocessor": 65536,
    "sharedMemPerMultiprocessor": 233472,
    "warpSize": 32,
    "numSms": 132,
}


def test_a_header_gives_the_limits() -> None:
    assert sm_limits(H200) == limits_of("9.0")


def test_the_headers_own_numbers_are_used() -> None:
    limits = sm_limits(H200 | {"sharedMemPerMultiprocessor": 100_000})
    assert limits is not None
    assert limits.shared_memory == 100_000


@pytest.mark.parametrize("key", [key for key in H200 if key not in {"name", "numSms"}])
def test_a_header_that_lacks_a_number_gives_none(key: str) -> None:
    assert sm_limits({name: value for name, value in H200.items() if name != key}) is None


@pytest.mark.parametrize(
    "change",
    [
        {"warpSize": 64},  # AMD
        {"computeMajor": 99},
        {"regsPerMultiprocessor": 0},
        {"regsPerMultiprocessor": "65536"},
        {"regsPerMultiprocessor": None},
        {"maxThreadsPerMultiprocessor": -1},
    ],
)
def test_a_header_that_makes_no_sense_gives_none(change) -> None:
    assert sm_limits(H200 | change) is None


def test_an_unknown_compute_capability_is_none() -> None:
    assert limits_of("1.3") is None
