"""The tables of checks and hazards: whole, in words that can be filled, each with its source."""

import tomllib
from dataclasses import replace
from importlib.resources import files
from itertools import product

import pytest

from tracehunch.predict.environment import environment
from tracehunch.predict.releases import releases
from tracehunch.predict.sdpa import check, predict_sdpa
from tracehunch.predict.sdpa.hazard_tests import TESTS
from tracehunch.predict.sdpa.hazards import _entries
from tracehunch.predict.sdpa.words import hazard_slots, slots

TABLES = sorted(
    file.name.removesuffix(".toml")
    for file in (files("tracehunch.predict.sdpa") / "tables").iterdir()
    if file.name.endswith(".toml")
)


@pytest.mark.parametrize("name", TABLES)
def test_words_can_be_filled_and_sources_are_there(name, call, on):
    sizes = slots(call(), on("h200"))
    for row in check.table_of(name).checks:
        words = {**sizes, **row.numbers}
        assert row.words.format_map(words)
        assert row.todo.format_map(words)
        assert row.source


@pytest.mark.parametrize(("name", "version"), list(product(TABLES, releases())))
def test_no_version_has_two_forms_of_one_check(name, version):
    ids = [row.id for row in check.checks_in(name, version)]
    assert len(ids) == len(set(ids))


def test_every_predicate_is_used():
    used = {row.passes for name in TABLES for row in check.table_of(name).checks}
    assert used == set(check.PREDICATES.values())


def test_what_differs_between_versions_is_what_the_tables_say():
    assert check.changing("cuda-flash") == {"dtype", "heads"}
    assert check.changing("cuda-efficient") == {"heads", "offset"}
    assert check.changing("cuda-cudnn") == {
        "dropout-steps",
        "head-dim",
        "heads",
        "many-heads",
        "training-head-dim",
    }


def test_a_check_without_its_keys_is_an_error():
    with pytest.raises(ValueError, match="missing keys \\['words'"):
        check.parse_check({"id": "x", "test": "never"})
    row = {"id": "x", "test": "no-such", "words": "", "do": "", "source": ""}
    with pytest.raises(ValueError, match="no-such"):
        check.parse_check(row)


def test_predicates_answer_to_calls_of_any_dimensions(on):
    """A refusal for the number of dimensions must not keep others from answering."""
    from tracehunch.predict.sdpa import SdpaCall, tensor  # noqa: PLC0415  # loaded only where it is needed

    shapes = [(8, 4), (3, 8, 4), (2, 3, 8, 4), (1, 2, 3, 8, 4)]
    envs = [on("h200"), on("mi300x"), environment(torch="2.13", device="cpu")]
    for q, k, v, env in product(shapes, shapes, shapes, envs):
        given = SdpaCall(*(tensor(shape, "bfloat16") for shape in (q, k, v)), mask=tensor((8, 8), "bool"))
        prediction = predict_sdpa(given, env)
        if len({len(q), len(k), len(v), 4}) > 1:
            assert prediction.chosen == "math"


def test_hazards_have_words_links_and_tests(call, on):
    env = on("h200")
    sizes = hazard_slots(call(), env, predict_sdpa(call(), env))
    assert {entry.test for entry in _entries()} == set(TESTS.values())
    for entry in _entries():
        assert entry.words.format_map(sizes)
        assert entry.todo.format_map(sizes)
        assert entry.links
        assert all(link.startswith("https://") for link in entry.links)
    ids = [entry.id for entry in _entries()]
    assert len(ids) == len(set(ids))


def test_a_new_release_is_one_entry():
    """Its rules are those of the release before, but for the checks that say otherwise."""
    text = (files("tracehunch.predict") / "releases.toml").read_text(encoding="utf-8")
    for table in tomllib.loads(text)["release"]:
        version = tuple(int(part) for part in table["torch"].split("."))
        assert releases()[version].exact == (table["knowledge"] == "exact")
    newest = max(releases())
    assert all(
        row.in_version((newest[0], newest[1] + 1)) == row.in_version(newest)
        for name in TABLES
        for row in check.table_of(name).checks
        if row.until is None
    )


def test_slots_do_without_what_is_not_known(call):
    env = replace(environment(torch="2.13", device="cuda"), cudnn=None)
    words = slots(call(), env)
    assert (words["cc"], words["cudnn"]) == ("unknown", "of unknown version")
