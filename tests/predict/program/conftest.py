"""Programs made of a few calls, as a recording would have them."""

import sys
from pathlib import Path

import pytest

from tracehunch.predict.environment import environment
from tracehunch.predict.ops import Tensor, tensor
from tracehunch.predict.program import SDPA, OpCall, Program, guess_program
from tracehunch.predict.sdpa import sdpa_call

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))


@pytest.fixture(scope="session")
def h200():
    return environment("h200", "2.11", 91900)


def call_of(op, *tensors, out=(), module="", line="", **more):
    """Return a call on the GPU; tensors and `out` are (shape, dtype) or tensors."""
    made = [one if isinstance(one, Tensor) else tensor(*one) for one in tensors]
    outputs = [one if isinstance(one, Tensor) else tensor(*one) for one in out]
    given = {
        "devices": ("cuda",) * len(made),
        "output_devices": ("cuda",) * len(outputs),
        **more,
    }
    return OpCall(op, tensors=tuple(made), outputs=tuple(outputs), module=module, line=line, **given)


@pytest.fixture(scope="session")
def make():
    return call_of


@pytest.fixture(scope="session")
def attention():
    def made(*sizes, module="", **options):
        return OpCall(
            SDPA, sdpa=sdpa_call(*sizes, **options), devices=("cuda",) * 3, module=module, line="model.py:7"
        )

    return made


@pytest.fixture
def guess(h200):
    def of(*calls, **more):
        return guess_program(Program("test", tuple(calls), torch="2.11.0", **more), h200)

    return of
