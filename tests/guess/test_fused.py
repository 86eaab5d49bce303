"""Claims that ops were merged: one list is one kernel, a list of lists several."""

import pytest

from tracehunch.errors import GuessError
from tracehunch.guess import Guess
from tracehunch.guess.claims import claims_from_line, claims_from_mapping
from tracehunch.guess.hunch import parse_hunch
from tracehunch.guess.write import write_hunch


def merged(claims):
    return [claim.expected for claim in claims if (claim.key, claim.relation) == ("fused", "merged")]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("gelu", [("gelu",)]),
        (["gelu", "mul"], [("gelu", "mul")]),
        (("gelu", "mul", "gelu"), [("gelu", "mul")]),
        ([["gelu", "mul"], ["add", "relu"]], [("gelu", "mul"), ("add", "relu")]),
        ([["gelu", "mul"], "relu"], [("gelu", "mul"), ("relu",)]),
    ],
)
def test_lists_of_ops(written, expected):
    assert merged(claims_from_mapping("s", {"fused": written})) == expected


@pytest.mark.parametrize("written", [5, [], [[]], [["gelu", 3]], [""]])
def test_what_is_no_list_of_ops_says_what_to_write(written):
    with pytest.raises(GuessError) as error:
        claims_from_mapping("s", {"fused": written})
    assert '["gelu", "mul"]' in error.value.todo


def test_a_typed_line_lists_ops_up_to_the_next_key():
    claims = claims_from_line("s", "fused gelu, mul, compiled.graph_breaks 0")
    assert merged(claims) == [("gelu", "mul")]
    assert claims[-1].key == "compiled.graph_breaks"


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("compiled_graph_breaks", "compiled.graph_breaks"),
        ("compiled_kernels", "compiled.kernels"),
        ("compiled_last_recompile", "compiled.last_recompile"),
    ],
)
def test_keys_as_marker_arguments(written, key):
    (claim,) = claims_from_mapping("s", {written: 0})
    assert claim.key == key


@pytest.mark.parametrize(
    ("written", "meant"),
    [("graph_breaks", "graph_breaks"), ("compiled.last_recompil", "last_recompile"), ("fuse", "fused")],
)
def test_a_slip_names_the_nearest_key(written, meant):
    with pytest.raises(GuessError) as error:
        claims_from_mapping("s", {written: 0})
    assert meant in error.value.todo


def test_a_file_holds_several_kernels_of_a_scope_and_comes_back_the_same():
    text = """
        [[guess]]
        scope = "step"
        compiled.last_recompile = "<= 2"
        fused = [["gelu", "mul"], ["add", "relu"]]
        [[guess]]
        scope = "step"
        why = "the norm"
        fused = ["layer_norm", "add"]
    """
    guess = parse_hunch(text).guess
    assert merged(guess.claims) == [("gelu", "mul"), ("add", "relu"), ("layer_norm", "add")]
    again = parse_hunch(write_hunch(guess))
    assert again.guess == guess
    assert not again.edited


def test_the_same_kernel_twice_is_refused():
    text = '[[guess]]\nscope = "s"\nfused = ["gelu"]\n[[guess]]\nscope = "s"\nfused = ["gelu"]\n'
    with pytest.raises(GuessError, match="twice"):
        parse_hunch(text)


def test_other_keys_stay_one_claim_a_table():
    claims = (*claims_from_mapping("s", {"kernels": 1}), *claims_from_mapping("s", {"kernels": 2}))
    with pytest.raises(GuessError, match="twice"):
        write_hunch(Guess(claims))
