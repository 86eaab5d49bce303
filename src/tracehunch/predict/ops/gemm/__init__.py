"""Matrix products, as cuBLAS runs them."""

from tracehunch.predict.ops.gemm.predict import predict_gemm, predict_product
from tracehunch.predict.ops.gemm.product import Product, alignment_of

__all__ = ["Product", "alignment_of", "predict_gemm", "predict_product"]
