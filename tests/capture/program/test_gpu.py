"""The GPU that is pretended is the one that was asked for, and is gone afterwards."""

from __future__ import annotations

import pytest

from tracehunch.capture.program import record_call
from tracehunch.predict.environment import environment

torch = pytest.importorskip("torch")


def test_the_gpu_that_was_asked_for_answers() -> None:
    seen: dict[str, object] = {}

    def look() -> None:
        stream, event = torch.cuda.Stream(), torch.cuda.Event(enable_timing=True)
        with torch.cuda.stream(stream), torch.cuda.device(0):
            event.record()
        torch.cuda.synchronize()
        torch.cuda.manual_seed_all(1)
        seen["name"] = torch.cuda.get_device_name()
        seen["capability"] = torch.cuda.get_device_capability()
        seen["sms"] = torch.cuda.get_device_properties(0).multi_processor_count
        seen["there"] = (torch.cuda.is_available(), torch.cuda.device_count(), torch.cuda.is_bf16_supported())
        seen["cudnn"] = torch.backends.cudnn.version()
        seen["random"] = torch.randn(2, device="cuda", generator=torch.Generator("cuda")).device.type

    record_call(look, env=environment("a100-80-sxm", "2.11"))
    assert seen == {
        "name": "NVIDIA A100 80GB SXM", "capability": (8, 0), "sms": 108, "there": (True, 1, True),
        "cudnn": 91900, "random": "cuda",
    }  # fmt: skip
    assert not torch.cuda.is_initialized()
