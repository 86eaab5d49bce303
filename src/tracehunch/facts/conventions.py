"""How the facts about work are counted: what `tracehunch explain` says beside their meaning."""

from typing import Final

BOUND: Final = (
    "By the roofline: a kernel whose FLOPs per byte reach the GPU's ridge (peak FLOP/s over peak "
    "bandwidth) is compute-bound, any other memory-bound. The peaks are the data sheet's, for the unit "
    "and number format that it multiplies with. A kernel far below both peaks is held back by neither, "
    "but by latency: too little work to fill the GPU. More than 100% of peak bandwidth came from a "
    "cache. A scope is overhead-bound where the GPU idles at least half of its wall time; else what "
    "binds the kernels with most of its GPU time, if those of which it is not known cannot tip it."
)

FLOPS: Final = (
    "Only matrix products, convolutions and attention count, a multiply and an add as two; elementwise "
    "ops, softmax and reductions count as none. A fused causal attention counts exactly the (query, "
    "key) pairs that its mask leaves, about half of what torch.utils.flop_counter says, its backward "
    "five products (the scores are computed again). Known if the inputs of every such kernel are: those "
    "of CUDA graphs' replays, of Triton and of libraries outside ATen are not."
)

HBM_BYTES: Final = (
    "Each input of an op is read once and each result written once, whatever caches save and kernels "
    "read again; what is expanded (stride 0) is read once. A memcpy counts what was recorded of it, "
    "within the GPU twice. Known if at least 99% of the GPU time is that of ops whose inputs are known."
)

RATE: Final = "Over the sum of the kernels' times, idle time left out; look tells it in percent of peak, too."
