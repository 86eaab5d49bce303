"""What names of the different families are taken for."""

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehunch.kernels import classify, classify_activity, is_copy_kernel
from tracehunch.kernels.rule import all_rules

FLASH = (
    "void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
    "cutlass::bfloat16_t, Flash_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >, "
    "false, true, false, false, true, true, false, false>(pytorch_flash::Flash_fwd_params)"
)
SDPA = "cudnn_generated_fort_native_sdpa_sm90_flash_"
CUDNN = f"{SDPA}fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0"
STRIDED = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"
VECTORISED = "void at::native::vectorized_elementwise_kernel<8, at::native::"
COPY = (
    f"{STRIDED}direct_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#3}}::operator()() const::"
    "{lambda()#12}::operator()() const::{lambda(c10::BFloat16)#1}>(at::TensorIteratorBase&)"
)
CAST = (
    f"{VECTORISED}bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda(float)#1}}, "
    "std::array<char*, 2ul> >(int)"
)
MASKED_FILL = (
    f"{STRIDED}(anonymous namespace)::masked_fill_kernel(at::TensorIterator&, c10::Scalar const&)::"
    "{lambda()#1}::operator()() const::{lambda()#12}::operator()() const::"
    "{lambda(c10::BFloat16, bool)#1}>(int)"
)
WHERE = (
    f"{VECTORISED}(anonymous namespace)::where_kernel_impl(at::TensorIterator&)::{{lambda()#1}}::"
    "operator()() const::{lambda()#14}::operator()() const::{lambda(bool, float, float)#1}, "
    "std::array<char*, 4ul> >(int)"
)
SCALE = (
    f"{VECTORISED}AUnaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
    "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul> >(int)"
)
FMHA = "fmha_cutlass"
KERNEL2 = "void cutlass::Kernel2<cutlass_80_"
XMMA = "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x128x8_stage3_warpsize2x2x1_"


@pytest.mark.parametrize(
    ("name", "library", "algorithm", "unit", "dtype"),
    [
        ("nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_TNN", "cublas", "gemm", "tensor-core", "bf16"),
        ("nvjet_sm90_hsh_128x256_64x4_2x1_v_bz_coopA_TNN", "cublas", "gemm", "tensor-core", "fp16"),
        ("nvjet_sm100_qqtst_128x256_128x6_2x1_2cta_v_bz_bias_TNT", "cublas", "gemm", "tensor-core", "fp8"),
        (f"{XMMA}ffma_aligna4_alignc4_execute_kernel__5x_cublas", "cublas", "gemm", "cuda-core", "fp32"),
        (f"{XMMA}tensor16x8x8_execute_kernel__5x_cublas", "cublas", "gemm", "tensor-core", "fp32"),
        (
            "sm80_xmma_gemm_tf32f32_tf32f32_f32_nn_n_tilesize128x128x16_stage4_warpsize2x2x1_tensor16x8x8_kernel",
            "cublas",
            "gemm",
            "tensor-core",
            "tf32",
        ),
        ("ampere_sgemm_128x64_tn", "cublas", "gemm", "cuda-core", "fp32"),
        ("volta_fp16_s884gemm_fp16_64x128_ldg8_f2f_nt", "cublas", "gemm", "tensor-core", "fp16"),
        (
            "turing_fp16_s1688gemm_fp16_256x128_ldg8_f2f_stages_32x1_tn",
            "cublas",
            "gemm",
            "tensor-core",
            "fp16",
        ),
        (
            "ampere_bf16_s1688gemm_bf16_128x128_ldg8_f2f_stages_32x1_nn",
            "cublas",
            "gemm",
            "tensor-core",
            "bf16",
        ),
        (
            f"{KERNEL2}simt_sgemm_128x256_8x4_nn_align1",
            "cutlass",
            "gemm",
            "cuda-core",
            "fp32",
        ),
        (
            f"{KERNEL2}tensorop_s1688gemm_128x128_16x5_nn_align4>(cutlass_80::Params)",
            "cutlass",
            "gemm",
            "tensor-core",
            "tf32",
        ),
        (FLASH, "flash-attention", "attention-forward", "tensor-core", "bf16"),
        (CUDNN, "cudnn", "attention-forward", "tensor-core", None),
        (CUDNN.replace("fprop", "bprop"), "cudnn", "attention-backward", "tensor-core", None),
        (
            f"{FMHA}F_f32_aligned_64x64_rf_sm80(P::K)",
            "mem-efficient",
            "attention-forward",
            "tensor-core",
            "fp32",
        ),
        (
            f"{FMHA}F_f32_notaligned_64x64_rf_sm75",
            "mem-efficient",
            "attention-forward",
            "cuda-core",
            "fp32",
        ),
        (
            f"{FMHA}F_f16_aligned_64x64_rf_sm75",
            "mem-efficient",
            "attention-forward",
            "tensor-core",
            "fp16",
        ),
        (
            f"{FMHA}F_f16_aligned_64x64_rf_sm50",
            "mem-efficient",
            "attention-forward",
            "cuda-core",
            "fp16",
        ),
        (
            f"{FMHA}B_bf16_notaligned_64x64_k32_dropout_sm70",
            "mem-efficient",
            "attention-backward",
            "tensor-core",
            "bf16",
        ),
        ("triton_tem_fused_flex_attention_0", "inductor", "attention-forward", "unknown", None),
        ("triton_poi_fused_add_gelu_3", "inductor", "elementwise", "none", None),
        ("triton_red_fused_native_layer_norm_0", "inductor", "reduce", "none", None),
        (COPY, "pytorch", "copy", "none", "bf16"),
        (CAST, "pytorch", "copy", "none", "bf16"),
        (MASKED_FILL, "pytorch", "elementwise", "none", "bf16"),
        (WHERE, "pytorch", "elementwise", "none", "fp32"),
        (SCALE, "pytorch", "elementwise", "none", "bf16"),
        (
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "nccl",
            "collective",
            "none",
            "bf16",
        ),
        (
            "ncclSymkDevKernel_AllReduce_RSxLDMC_AGxSTMC(ncclSymkDevWorkArgs4K)",
            "nccl",
            "collective",
            "none",
            None,
        ),
        ("Cijk_Alik_Bljk_SB_MT64x128x16_SN_1LDSB0_K1", "tensile", "gemm", "vector", "fp32"),
        ("Cijk_Alik_Bljk_HHS_MT128x128x32_MI16x16x16x1_SN", "tensile", "gemm", "mfma", "fp16"),
        ("aiter::fmha_fwd_hd128_bf16_causal_rtna_group", "aiter", "attention-forward", "mfma", "bf16"),
    ],
)
def test_identity(name: str, library: str, algorithm: str, unit: str, dtype: str | None) -> None:
    identity = classify(name)
    assert (identity.library, identity.algorithm, identity.unit, identity.dtype) == (
        library,
        algorithm,
        unit,
        dtype,
    )


def test_fields_are_decoded() -> None:
    fields = dict(classify("nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_bias_TNT").fields)
    assert fields == {
        "tile": "64x8",
        "K block x stages": "64x16",
        "cluster": "4x1",
        "types (input, compute, output)": "tst",
        "rasterisation": "vertical",
        "epilogue": "bias",
        "split along K": "yes",
        "layout of A, B, C": "TNT",
        "arch of the code": "sm_90",
    }
    assert dict(classify(FLASH).fields)["causal"] == "yes"
    assert dict(classify(FLASH).fields)["package"] == "the copy inside PyTorch"
    assert dict(classify(SCALE).fields)["operation"] == "mul"
    assert dict(classify(MASKED_FILL).fields)["operation"] == "masked_fill"


def test_flash_attention_outside_pytorch_is_told_apart() -> None:
    identity = classify(FLASH.replace("pytorch_flash", "flash"))
    assert dict(identity.fields)["package"] != "the copy inside PyTorch"


def test_copy_kernels() -> None:
    assert is_copy_kernel(classify(COPY))
    assert is_copy_kernel(classify(CAST))
    assert is_copy_kernel(
        classify("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(int)")
    )
    assert is_copy_kernel(
        classify(
            "void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2>(float*)"
        )
    )
    assert not is_copy_kernel(classify(MASKED_FILL))
    assert not is_copy_kernel(classify(f"{VECTORISED}FillFunctor<int>, std::array<char*, 1ul> >(int)"))
    assert not is_copy_kernel(classify("my_copy_kernel"))


@pytest.mark.parametrize(
    "name",
    [
        "Cijk_Ailk_Bljk_SB_MT32x32x8_SN_1LDSA0_K1_WG16_16_1",
        "attn_fwd",
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, int>(int)",
        "triton_tem_fused_flex_attention_0",
        "triton_tem_fused_mm_0",
    ],
)
def test_on_amd_nothing_speaks_of_nvidia(name: str) -> None:
    identity = classify(name, hints=("amd",))
    text = " ".join(
        [identity.library, identity.unit, identity.note, *(f"{a} {b}" for a, b in identity.fields)]
    ).lower()
    assert identity.classified
    assert not any(word in text for word in ("tensor core", "tensor-core", "cuda", "nvidia", "sm_"))


def test_a_vendor_excludes_the_other_ones_rules() -> None:
    assert classify("attn_fwd").library == "aotriton"
    assert classify("attn_fwd", hints=("amd",)).library == "aotriton"
    assert not classify("attn_fwd", hints=("nvidia",)).classified
    assert classify("attn_fwd", hints=("nvidia", "triton")).library == "triton"


def test_the_same_collective_is_rccls_on_amd() -> None:
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    assert classify(name, hints=("amd",)).library == "rccl"
    assert classify(name, hints=("nvidia",)).library == "nccl"


def test_memcpy_and_memset() -> None:
    pageable = classify_activity("Memcpy HtoD (Pageable -> Device)", "memcpy")
    assert (pageable.library, pageable.algorithm) == ("driver", "memcpy")
    assert dict(pageable.fields) == {"direction": "host to device", "from": "pageable", "to": "device"}
    assert "cannot overlap" in pageable.note
    pinned = classify_activity("Memcpy DtoH (Device -> Pinned)", "memcpy")
    assert pinned.note == ""
    memset = classify_activity("Memset (Device)", "memset")
    assert (memset.library, memset.algorithm, memset.fields) == ("driver", "memset", (("memory", "device"),))
    assert classify_activity("CopyDeviceToHost", "memcpy").classified
    assert classify_activity("nvjet_tst_64x8_64x16_1x2_h_bz_TNT", "kernel").library == "cublas"


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=300))
def test_any_text_has_an_identity(name: str) -> None:
    identity = classify(name)
    assert identity.name == name
    assert identity.classified == (identity.rule is not None)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([example for rule in all_rules().rules for example in rule.examples]), st.data())
def test_a_cut_or_damaged_name_never_fails(example: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(example)))
    damage = data.draw(st.text(max_size=5))
    classify(example[:cut])
    classify(example[:cut] + damage + example[cut:])


def test_importing_the_classifier_loads_no_numpy() -> None:
    code = "import sys, tracehunch.kernels, tracehunch.hardware; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
