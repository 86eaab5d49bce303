"""One launch of an attention call as the model of time sees it: what is moved and computed."""

from dataclasses import dataclass

from tracehunch.predict.ops.gemm import Product
from tracehunch.predict.roofline.dims import Case


@dataclass(frozen=True, slots=True)
class Step:
    """A kernel, copy or memset; or a product with its further kernels; or all kernels of a fused backend.

    `kind` names its cost in `fitted.toml`, as "stream-half". `bytes` are those of whole tensors read and
    written, as they would go to and from memory; `masked` the elements of a softmax that a causal mask put to
    minus infinity (they are slower), `rows` the rows of a reduction or softmax, `length` the elements of one.
    A `product` ("product-half", "product-fp32") brings its time in `us`, from the model of products and the
    GPU's data sheet.
    """

    kind: str
    bytes: int = 0
    masked: int = 0
    rows: int = 0
    length: int = 0
    us: float | None = None
    product: Product | None = None
    fused: Case | None = None
