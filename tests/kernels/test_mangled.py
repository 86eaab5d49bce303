"""Spellings of names."""

import pytest

from tracehunch.kernels.mangled import canonical, unmangled_head


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bEEvPf", "aiter::add_rmsnorm_quant_kernel<DF16bEEvPf"),
        ("_ZN2at6native12_GLOBAL__N_16kernelIfEEvPf", "at::native::kernel<fEEvPf"),
        ("_Z6kernelPf", "kernel(Pf"),
        ("_ZN5aiter3fooE", "aiter::foo(E"),
        ("_ZN9999bad", None),
        ("_Z", None),
        ("kernel", None),
    ],
)
def test_head(name: str, head: str | None) -> None:
    assert unmangled_head(name) == head


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("void at::native::(anonymous namespace)::k<float>(float*)", "at::native::k<float>(float*)"),
        ("void (anonymous namespace)::k<float>(float*)", "k<float>(float*)"),
        (
            "std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(int)",
            "internal::gemvx::kernel<int>(int)",
        ),
        ("attn_fwd.kd", "attn_fwd"),
        ("kernel(float*) [clone .kd]", "kernel(float*)"),
        ("voidish", "voidish"),
        ("void at::native::k<at::native::(anonymous namespac", "at::native::k<at::native::"),
    ],
)
def test_canonical(name: str, text: str) -> None:
    assert canonical(name) == text
