"""Words of facts that are text."""

import pytest

from tracehunch.errors import GuessError
from tracehunch.guess.words import fact_word


def test_synonyms_become_the_facts_own_word() -> None:
    assert fact_word("sdpa.backend", "FLASH_ATTENTION") == "flash"
    assert fact_word("dtype", "torch.bfloat16") == "bf16"


@pytest.mark.parametrize("key", ["bound", "tensor_cores"])
def test_a_word_that_can_never_hold_is_an_error_that_names_the_others(key) -> None:
    with pytest.raises(GuessError, match="use "):
        fact_word(key, "gpu")


def test_a_number_format_that_is_not_listed_is_taken() -> None:
    assert fact_word("dtype", "complex64") == "complex64"
