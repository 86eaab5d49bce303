import pytest

from tracehunch.errors import GuessError
from tracehunch.predict.environment import environment
from tracehunch.predict.ops import predict_gemm, predict_op, tensor


def bf16(*shape):
    return tensor(shape, "bf16")


def test_a_large_product_has_its_tile_counter_cleared(h200):
    found = predict_gemm(h200, m=4096, n=4096, k=4096, dtype="bf16")
    assert (found.kernel_count, found.memsets) == (1, 1)
    assert found.kernels[0].hint.startswith("nvjet_sm90_tst")
    assert found.kernels[0].unit == "tensor-core"
    assert found.flops == 2 * 4096**3
    assert found.bytes == 3 * 2 * 4096**2
    assert found.time.low_us < 180 < found.time.high_us


def test_a_long_product_with_few_results_is_split(h200):
    found = predict_gemm(h200, m=64, n=64, k=8192, dtype="float16")
    assert [kernel.algorithm for kernel in found.kernels] == ["gemm", "splitk-reduce"]
    assert found.memsets == 0
    assert "split along K" in found.reasons[0]


def test_the_naive_attention_of_the_seed_shape(h200):
    scores = predict_op("matmul", [bf16(8, 16, 1024, 64), bf16(8, 16, 1024, 64).transposed()], {}, h200)
    values = predict_op("matmul", [bf16(8, 16, 1024, 1024), bf16(8, 16, 1024, 64)], {}, h200)
    assert (scores.kernel_count, scores.memsets) == (1, 1)
    assert (values.kernel_count, values.memsets) == (1, 0)


@pytest.mark.parametrize("alignment", [1, 2, 4])
def test_strides_that_are_no_multiple_of_16_bytes_leave_nvjet(h200, alignment):
    found = predict_gemm(h200, m=512, n=512, k=512, batch=4, dtype="bf16", alignment=alignment)
    assert (found.kernel_count, found.memsets) == (1, 0)
    assert found.kernels[0].library == "cutlass"


def test_an_offset_misaligns(h200):
    whole = tensor((512, 512), "bf16")
    shifted = tensor((512, 512), "bf16", offset=1)
    assert "nvjet" in predict_op("mm", [whole, whole], {}, h200).kernels[0].hint
    assert "nvjet" not in predict_op("mm", [shifted, whole], {}, h200).kernels[0].hint


def test_fp32_runs_on_cuda_cores(h200):
    found = predict_gemm(h200, m=1024, n=1024, k=64, batch=128, dtype="fp32", transposed_b=True)
    assert (found.kernel_count, found.memsets) == (1, 0)
    assert found.kernels[0].unit == "cuda-core"


def test_older_gpus_clear_nothing_and_newer_ones_cannot_be_told(a100):
    older = predict_gemm(a100, m=4096, n=4096, k=4096, dtype="bf16")
    newer = predict_gemm(environment("b200", "2.13"), m=4096, n=4096, k=4096, dtype="bf16")
    assert (older.kernel_count, older.memsets, older.confidence) == (1, 0, "medium")
    assert (newer.kernel_count, newer.memsets, newer.confidence) == (1, None, "low")
    assert newer.time is not None
    assert newer.time.width > older.time.width - 1e-9


def test_other_versions_on_hopper_are_less_certain():
    found = predict_gemm(environment("h100-sxm", "2.13"), m=4096, n=4096, k=4096, dtype="bf16")
    assert (found.kernel_count, found.memsets, found.confidence) == (1, 1, "medium")
    assert "torch 2.11 on an H200" in found.reasons[-1]


def test_an_unknown_gpu_has_no_time():
    env = environment(device="cuda", compute_capability=(9, 0), torch="2.11")
    assert predict_gemm(env, m=64, n=64, k=64, dtype="bf16").time is None


def test_nothing_to_multiply_runs_nothing(h200):
    assert predict_gemm(h200, m=0, n=4, k=4, dtype="bf16").empty
    assert predict_op("mm", [bf16(0, 8), bf16(8, 8)], {}, h200).empty


def test_an_unknown_type_is_an_error(h200):
    with pytest.raises(GuessError, match="not known"):
        predict_gemm(h200, m=1, n=1, k=1, dtype="complex64")


def test_shapes_that_do_not_fit_raise(h200):
    found = predict_op("mm", [bf16(8, 16), bf16(8, 16)], {}, h200)
    assert "cannot be multiplied" in found.raises
    mixed = predict_op("mm", [bf16(8, 16), tensor((16, 8), "fp16")], {}, h200)
    assert "different types" in mixed.raises


def test_linear_folds_its_batch_and_adds_its_bias(h200):
    weight, bias = bf16(3072, 768), bf16(3072)
    folded = predict_op("linear", [bf16(4, 1024, 768), weight, bias], {}, h200)
    flat = predict_op("addmm", [bias, bf16(4096, 768), weight.transposed()], {}, h200)
    assert folded.kernels == tuple(flat.kernels) or folded.kernel_count == flat.kernel_count == 1
    assert folded.flops == flat.flops
    apart = bf16(4, 768, 1024).transposed()
    assert predict_op("linear", [apart, weight, bias], {}, h200).kernel_count == 3  # copy, product, bias


def test_addmm_copies_a_matrix_into_place(h200):
    matrix = predict_op("addmm", [bf16(64, 64), bf16(64, 64), bf16(64, 64)], {}, h200)
    assert (matrix.kernel_count, matrix.copy_count) == (1, 1)
    row = predict_op("baddbmm", [bf16(4, 1, 64), bf16(4, 64, 64), bf16(4, 64, 64)], {}, h200)
    assert (row.kernel_count, row.copy_count) == (2, 0)


def test_heads_behind_the_sequence_are_copied(h200):
    heads = bf16(8, 1024, 16, 64).transposed(1, 2)
    found = predict_op("matmul", [heads, heads.transposed()], {}, h200)
    assert [kernel.algorithm for kernel in found.kernels] == ["copy", "copy", "gemm"]


def test_heads_that_are_read_in_place(h200):
    one = bf16(1, 1024, 16, 64).transposed(1, 2)
    assert predict_op("matmul", [one, one.transposed()], {}, h200).kernel_count == 1


def test_a_vector_is_a_product_too(h200):
    assert predict_op("mv", [bf16(512, 512), bf16(512)], {}, h200).kernel_count == 1
