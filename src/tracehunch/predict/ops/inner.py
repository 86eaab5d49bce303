"""Which op a trace shows a kernel under, where the called one leaves the launch to another."""

from typing import Final

_INNERMOST: Final = {
    "relu": "clamp_min", "relu_": "clamp_min_", "relu6": "hardtanh", "relu6_": "hardtanh_", "rsub": "sub",
    "square": "pow", "square_": "pow_", "true_divide": "div", "embedding": "index_select", "stack": "cat",
    "concat": "cat", "concatenate": "cat", "hstack": "cat", "vstack": "cat", "randn": "normal_",
    "randn_like": "normal_", "normal": "normal_", "rand": "uniform_", "rand_like": "uniform_",
    "randint": "random_", "randint_like": "random_", "bernoulli": "bernoulli_", "linear": "addmm",
    "layer_norm": "native_layer_norm", "rms_norm": "_fused_rms_norm", "group_norm": "native_group_norm",
    "softmax": "_softmax", "log_softmax": "_log_softmax", "convolution": "cudnn_convolution",
    "conv2d": "cudnn_convolution", "_convolution": "cudnn_convolution", "nll_loss": "nll_loss_forward",
    "nll_loss2d": "nll_loss2d_forward", "max_pool2d": "max_pool2d_with_indices", "dropout": "native_dropout",
    "adaptive_avg_pool2d": "_adaptive_avg_pool2d", "argwhere": "nonzero", "to": "copy_", "_to_copy": "copy_",
    "contiguous": "copy_", "clone": "copy_", "reshape": "copy_", "item": "_local_scalar_dense",
    "argsort": "sort", "msort": "sort", "__and__": "bitwise_and", "__or__": "bitwise_or",
    "__xor__": "bitwise_xor", "new_zeros": "fill_", "take_along_dim": "gather",
    "repeat": "copy_", "mv": "addmv_", "_is_all_true": "all", "_is_any_true": "any", "_unsafe_index": "index",
    "index_put_": "_index_put_impl_",
    "index_put": "_index_put_impl_", "_unsafe_index_put": "_index_put_impl_",
}  # fmt: skip


def innermost(plain: str) -> str:
    """Return the full name of the op under which a plain one's own kernels are found in a trace."""
    return f"aten::{_INNERMOST.get(plain, plain)}"
