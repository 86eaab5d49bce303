"""Ops as people call them -> as the names of generated kernels hold them."""

from collections.abc import Mapping
from typing import Final

_PARTS: Final[Mapping[str, str]] = {
    "softmax": "amax exp | prepare_softmax exp | prepare_softmax_online exp",
    "log_softmax": "exp log",
    "cross_entropy_loss": "nll_loss_forward | exp log",
    "layer_norm": "native_layer_norm | var_mean",
    "batch_norm": "native_batch_norm | native_batch_norm_legit | native_batch_norm_legit_functional",
    "group_norm": "native_group_norm | var_mean",
    "rms_norm": "fused_rms_norm | rsqrt mean",
    "dropout": "native_dropout | bernoulli | inductor_random",
    "masked_fill": "where | scalar_tensor",
    "to": "to_copy | convert_element_type",
    "contiguous": "clone",
    "reshape": "clone",
    "expand": "clone",
    "scaled_dot_product_attention": "amax exp",
}
_SAID: Final[Mapping[str, str]] = {
    **_PARTS,
    "cross_entropy": "nll_loss_forward | log_softmax | exp log",
    "instance_norm": "native_batch_norm | var_mean",
    "dropout1d": "native_dropout | bernoulli", "dropout2d": "native_dropout | bernoulli",
    "reshape": "clone | view | unsafe_view",
    "float": "to_copy | convert_element_type", "half": "to_copy | convert_element_type",
    "bfloat16": "to_copy | convert_element_type", "type_as": "to_copy | convert_element_type",
    "square": "pow", "float_power": "pow", "multiply": "mul", "subtract": "sub", "rsub": "sub",
    "divide": "div", "true_divide": "div", "negative": "neg", "absolute": "abs", "clip": "clamp",
    "clamp": "clamp_min | clamp_max", "max": "amax", "min": "amin", "std": "var", "var": "var_mean",
    "relu6": "hardtanh", "concat": "cat", "concatenate": "cat", "greater": "gt", "less": "lt", "t": "permute",
    "linear": "mm | addmm | bmm | baddbmm", "matmul": "mm | bmm | addmm | baddbmm",
    "conv1d": "convolution", "conv2d": "convolution", "conv3d": "convolution",
}  # fmt: skip

PARTS: Final[Mapping[str, tuple[frozenset[str], ...]]] = {
    op: tuple(frozenset(words.split()) for words in said.split("|")) for op, said in _PARTS.items()
}
"""Op -> what Inductor's decompositions make of it: a kernel's name holds all words of one alternative."""

_ALTERNATIVES: Final = {
    op: tuple(frozenset(words.split()) for words in said.split("|")) for op, said in _SAID.items()
}
_PRODUCTS: Final = frozenset(
    {"mm", "bmm", "addmm", "baddbmm", "matmul", "linear", "convolution", "conv1d", "conv2d", "conv3d"}
)


def plain_word(op: str) -> str:
    """Return an op's name as people say it: ``aten::_softmax`` and ``F.softmax`` are both ``softmax``."""
    return op.strip().rpartition("::")[2].rpartition(".")[2].strip("_").lower()


def alternatives(op: str) -> tuple[frozenset[str], ...]:
    """Return sets of plain words: a kernel holds an op if it holds all words of one of them."""
    word = plain_word(op)
    return (frozenset([word]), *_ALTERNATIVES.get(word, ()))


def is_product(op: str) -> bool:
    """Tell ops that only a template merges: matrix products, convolutions, attention.

    The name of another kernel may hold them, too, for what it lays out for them, or takes from them.
    """
    word = plain_word(op)
    return word in _PRODUCTS or word.endswith(("_mm", "attention", "attention_backward"))
