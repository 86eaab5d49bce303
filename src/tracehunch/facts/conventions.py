"""How facts are counted where one line does not say it: `tracehunch explain` says it beside their meaning."""

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

FUSED: Final = (
    "A claim of several ops holds if one generated kernel has them all, in every call of the scope. Ops are "
    "named as the program calls them (gelu, aten::gelu); what Inductor calls differently or takes apart "
    "(layer_norm, softmax, linear) is known by its names, too. A matrix product or an attention counts as "
    "merged in a template only: other kernels name those that they lay data out for. The names of C++ loops "
    "are recorded with torch._inductor.config.cpp.enable_kernel_profile = True, set before compiling."
)

COMPILED_KERNELS: Final = (
    "Those of libraries (cuBLAS) included, copies, memsets and the compiler's trial runs not. Regions inside "
    "others, after a graph break, count for themselves; so do the graphs of a backward. On a CPU: C++ loops "
    "and library calls, recorded with torch._inductor.config.cpp.enable_kernel_profile = True."
)

GRAPH_BREAKS: Final = (
    "Seen as compiled regions inside others (the rest of the function after a break), ops of PyTorch beside "
    "the generated graph (.item()), or the compilation of the rest. A break with no tensor work after it, "
    "and one for which Dynamo gives up on the whole function, leave nothing of this: with_stack=True shows "
    "them. Without stacks, several regions side by side in a call cannot be told from functions that were "
    "compiled one by one. Breaks are a property of the code: each run of it counts those seen in any run."
)

LAST_COMPILE: Final = (
    "The calls are those in the file, in order, the first is 1: for steps the first recorded one, whatever "
    "its number. What was compiled before the recording cannot be told. First compilations count, and what "
    "a backward or autotuning compiles. The whole trace is one call, so claim it of a step or an annotation."
)

LAST_RECOMPILE: Final = (
    "As compiled.last_compile, but only of code that had been compiled before (compile_id 0/1 or later)."
)
