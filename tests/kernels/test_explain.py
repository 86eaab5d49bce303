"""Names in words."""

from tracehunch.kernels import explain


def test_a_known_name_is_decoded() -> None:
    text = explain("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn")
    assert "cublas" in text
    assert "tensor cores" in text
    assert "m16n8k16" in text
    assert "not the device" in text


def test_an_unknown_name_is_said_to_be_unknown() -> None:
    text = explain("void mine::kernel<float, 4>(float*)")
    assert "unclassified" in text
    assert "kernel" in text
    assert "namespace: mine" in text
    assert "'float, 4>(float*)'" in text


def test_a_plain_identifier_is_not_guessed() -> None:
    text = explain("add_kernel")
    assert "unclassified" in text
    assert "library  " not in text


def test_a_copy_is_explained() -> None:
    assert "host to device" in explain("Memcpy HtoD (Pageable -> Device)")
    assert "memset" in explain("Memset (Device)")


def test_a_long_name_is_cut() -> None:
    text = explain("x" * 70_000)
    assert len(text) < 1_000
    assert "70000 characters" in text


def test_odd_names_have_a_text() -> None:
    for name in ("", "\x1b[31m", "<", "::", "a::b::c(", "🙂"):
        assert "unclassified" in explain(name)
