import pytest

from tracehunch.errors import GuessError
from tracehunch.guess import Guess
from tracehunch.guess.hunch import parse_hunch
from tracehunch.guess.written import guess_of

FIRST = '[[guess]]\nscope = "a"\nkernels = 5\nsdpa.backend = "flash"\n'
TOML = FIRST + '[[guess]]\nscope = "b"\ngpu_time = "< 2ms"\n'


def test_python_and_toml_are_the_same_guess(tmp_path):
    (tmp_path / "hunch.toml").write_text(TOML)
    tables = [{"kernels": 5, "sdpa.backend": "flash"}, {"scope": "b", "gpu_time": "< 2ms"}]
    expected = parse_hunch(TOML).guess
    for written in (tables, tuple(tables), tmp_path / "hunch.toml", str(tmp_path / "hunch.toml"), expected):
        assert guess_of(written, "a").seal == expected.seal
    assert Guess.of(tables, scope="a") == expected


def test_the_scope_of_a_mapping_goes_before_the_one_given():
    assert [one.scope for one in guess_of({"scope": "own", "kernels": 1}, "given").claims] == ["own"]
    assert [one.scope for one in Guess.of({"kernels": 1}).claims] == ["step"]


@pytest.mark.parametrize(
    ("written", "said"),
    [({}, "claims nothing"), ([], "claims nothing"), ([3], "cannot be list"), (None, "cannot be NoneType")],
)
def test_what_claims_nothing_is_an_error(written, said):
    with pytest.raises(GuessError, match=said):
        guess_of(written, "a")


def test_claims_without_any_scope_are_an_error():
    with pytest.raises(GuessError, match="names no scope"):
        guess_of({"kernels": 1})


def test_a_key_of_a_scope_is_claimed_once():
    with pytest.raises(GuessError, match="claimed twice"):
        guess_of([{"kernels": 1}, {"kernels": 2}], "a")
