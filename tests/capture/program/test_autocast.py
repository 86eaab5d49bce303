"""The operations that autocast casts are those that torch registers kernels for."""

from __future__ import annotations

import pytest

from tracehunch.capture.program.autocast import FULL, LOWER, OUTPUT, WIDEST

torch = pytest.importorskip("torch")

REFUSED = "binary_cross_entropy"  # raises, as it always did
UNCASTED = ("cat", "stack")


def test_every_operation_with_an_autocast_kernel_has_a_policy() -> None:
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    names = [name for name in torch._C._dispatch_get_all_op_names() if name.startswith("aten::")]
    registered = {name.removeprefix("aten::") for name in names if has(name, "AutocastCUDA")}
    known = {*LOWER, *FULL, *OUTPUT, *WIDEST}
    assert registered - {REFUSED} - known == set()
    assert known - registered == set()
    assert not any(has(f"aten::{name}", "AutocastCUDA") for name in UNCASTED)
