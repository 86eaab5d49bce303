"""The list of PyTorch's ops, against the PyTorch that is installed."""

import torch

from tracehunch.judge.misspelt import aten_ops


def test_the_ops_of_pytorch_are_listed():
    names = (name.partition("::") for name in torch._C._dispatch_get_all_op_names())
    there = {op.partition(".")[0] for space, _, op in names if space == "aten"}
    assert len(there & set(aten_ops())) > 1_500
    assert len(there - set(aten_ops())) <= 0.05 * len(there)  # a later release adds some
