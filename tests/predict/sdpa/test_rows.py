import json

import pytest

from tracehunch.errors import GuessError
from tracehunch.predict.activities import Activities, KernelGuess
from tracehunch.predict.environment import environment
from tracehunch.predict.sdpa import call_from_row, predict_rows

LEAST = {"B": 2, "H": 8, "S": 1024, "D": 128, "dtype": "bfloat16"}


def predicted(row, **changes):
    env = environment("h200", "2.13", **changes)
    (line,) = predict_rows([json.dumps(row)], env)
    return json.loads(line)["predicted"]


def test_absent_keys_have_the_values_of_a_plain_call():
    call = call_from_row(LEAST)
    assert [given.shape for given in call.inputs] == [(2, 8, 1024, 128)] * 3
    assert call.mask is None
    assert (call.is_causal, call.enable_gqa, call.requires_grad, call.dropout) == (False, False, False, 0.0)


def test_null_is_the_same_as_absent():
    optional = ("Hk", "Sk", "Dv", "causal", "mask", "dropout", "grad", "gqa", "layout", "deterministic")
    assert call_from_row(LEAST | dict.fromkeys(optional)) == call_from_row(LEAST)


def test_the_line_is_kept_and_predicted_is_added():
    line = '{"B": 2, "H": 8,  "S": 1024, "D": 128, "dtype": "bfloat16", "note": "kept"}'
    (out,) = predict_rows([line], environment("h200", "2.13"))
    assert out.startswith(line[:-1] + ', "predicted": {"chosen": "CUDNN_ATTENTION"')
    assert json.loads(out)["predicted"] == {
        "chosen": "CUDNN_ATTENTION",
        "flash": True,
        "efficient": True,
        "cudnn": True,
        "reasons": {},
        "raises": None,
    }


def test_a_prediction_that_is_there_is_replaced():
    (first,) = predict_rows([json.dumps(LEAST)], environment("h200", "2.10"))
    (second,) = predict_rows([first], environment("h200", "2.13"))
    assert json.loads(second)["predicted"]["chosen"] == "CUDNN_ATTENTION"
    assert second.count("predicted") == 1


def test_blank_lines_go_and_the_machine_passes():
    header = '{"device": "NVIDIA H200", "torch": "2.11.0+cu130"}'
    out = list(predict_rows([header, "", json.dumps(LEAST), "\n"], environment("h200", "2.11")))
    assert out[0] == header
    assert len(out) == 2


def test_activities_are_counted_where_a_counter_is_given():
    def count(_call, _env):
        return Activities(kernels=(KernelGuess("x", "cudnn", "attention"),), copies=("dtod",), memsets=None)

    (line,) = predict_rows([json.dumps(LEAST)], environment("h200", "2.13"), count)
    got = json.loads(line)["predicted"]
    assert (got["kernels"], got["copies"], got["memsets"]) == (1, 1, None)


def test_what_cannot_be_told_is_null_with_its_reason():
    (line,) = predict_rows([json.dumps(LEAST)], environment(torch="2.13", device="cuda"))
    got = json.loads(line)["predicted"]
    assert got["chosen"] is None
    assert got["flash"] is None
    assert got["reasons"]["chosen"] == ["flash: depends on the GPU's compute capability"]


def test_deterministic_lines_only_warn_unless_the_environment_is_strict():
    row = LEAST | {"deterministic": True}
    assert predicted(row)["chosen"] == "CUDNN_ATTENTION"
    assert predicted(row, deterministic=True)["chosen"] == "FLASH_ATTENTION"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nonsense", "line 2: no JSON"),
        ("[1]", "line 2: no JSON object"),
        ('{"B": 1}', "line 2: .*required field"),
        (json.dumps(LEAST | {"B": "two"}), r"line 2: .*Expected `int`"),
        (json.dumps(LEAST | {"B": -1}), "line 2: batch is -1"),
        (json.dumps(LEAST | {"dtype": "float12"}), "line 2: 'float12' is no data type"),
        (json.dumps(LEAST | {"layout": "zigzag"}), "line 2: layout 'zigzag'"),
        (json.dumps(LEAST | {"mask": "window"}), "line 2: mask 'window' is not known"),
    ],
)
def test_a_line_that_makes_no_sense_is_named(line, says):
    with pytest.raises(GuessError, match=says):
        list(predict_rows([json.dumps(LEAST), line], environment("h200", "2.13")))
