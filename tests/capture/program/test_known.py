"""Values of tensors: followed where all that goes into them is known, forgotten where something is not."""

from __future__ import annotations

import pytest

from tracehunch.capture.program import record_call

torch = pytest.importorskip("torch")


def decides(make: object, *, values: bool = False) -> bool:
    """Whether the recording can go on where the program decides by what `make()` returns."""

    def run() -> None:
        if make():  # type: ignore[operator]  # it is callable
            torch.ones(1, device="cuda")

    return not record_call(run, values=values).obstacles


def zeros(*shape: int) -> object:
    return torch.zeros(*shape, device="cuda")


def test_what_is_made_of_constants_is_known() -> None:
    assert decides(lambda: bool((zeros(3) + torch.arange(3, device="cuda") == 2).any()))
    assert decides(lambda: torch.tensor([1, 2], device="cuda").sum() > 2)
    assert decides(lambda: torch.ones(2, 3, device="cuda").t().sum(0)[1].item() == 3)


def test_chance_is_unknown_without_values() -> None:
    assert not decides(lambda: torch.randn(3, device="cuda").sum() > 0)
    assert decides(lambda: torch.randn(3, device="cuda").sum() > 0, values=True)


def test_chance_on_the_host_is_unknown_but_for_an_order_of_data() -> None:
    assert not decides(lambda: torch.randn(3, device="cpu").sum() > 0)
    assert not decides(lambda: torch.randint(0, 9, (3,), device="cpu").sum() > 0)
    assert decides(lambda: len(set(torch.randperm(3, device="cpu").tolist())) == 3)


def test_a_write_of_something_unknown_is_seen_by_all_views() -> None:
    def overwritten() -> object:
        whole = zeros(4)
        part = whole[1:]
        part.copy_(torch.randn(3, device="cuda"))
        return whole.sum() > 0

    assert not decides(overwritten)
    assert decides(overwritten, values=True)


def test_a_write_of_something_known_is_followed() -> None:
    def filled() -> object:
        whole = torch.empty(4, device="cuda")
        whole.fill_(2)
        whole[:2] = 1
        return whole.sum() == 6

    assert decides(filled)


def test_what_attention_returns_is_unknown() -> None:
    def attended() -> object:
        q = torch.randn(1, 2, 64, 64, device="cuda", dtype=torch.bfloat16)
        mask = torch.ones(64, 64, dtype=torch.bool, device="cuda")
        return torch.nn.functional.scaled_dot_product_attention(q, q, q, attn_mask=mask)

    assert not decides(lambda: attended().sum() > 0)  # type: ignore[attr-defined]  # torch is not typed here
    assert decides(lambda: attended().sum() > -1e9, values=True)  # type: ignore[attr-defined]  # torch is not typed here


def test_memory_that_nothing_was_written_to_is_unknown() -> None:
    assert not decides(lambda: torch.empty(3, device="cuda").sum() > 0)
    assert not decides(lambda: zeros(3).new_empty(2).sum() > 0)  # type: ignore[attr-defined]  # torch is not typed here


def test_large_tensors_are_not_followed() -> None:
    def large() -> object:
        return zeros(2048, 2048).any()

    assert not decides(large)
    assert decides(large, values=True)
