"""Ordinary operations: what one call runs on a GPU, from shapes, strides and data types."""

from tracehunch.predict.ops.call import predict_op
from tracehunch.predict.ops.gemm import predict_gemm
from tracehunch.predict.ops.table import known_ops
from tracehunch.predict.ops.tensor import Tensor, broadcast, tensor

__all__ = ["Tensor", "broadcast", "known_ops", "predict_gemm", "predict_op", "tensor"]
