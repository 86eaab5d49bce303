"""The reference is complete: commands, options, keys, findings, words, exit codes, environment variables."""

import importlib.util
import re
from pathlib import Path

import click
import pytest

from tracehunch.checks import CHECKS
from tracehunch.cli import common, failures
from tracehunch.facts.vocabulary import KEYS

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"

_spec = importlib.util.spec_from_file_location("docs_reference", DOCS / "tools" / "reference.py")
reference = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(reference)


_LINES = re.MULTILINE | re.DOTALL


def text(name):
    return (DOCS / "reference" / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", reference.pages())
def test_a_page_is_what_the_package_says(name):
    assert text(name) == reference.pages()[name], "run: python docs/tools/reference.py"


def test_every_command_and_option_is_listed():
    sections = dict(re.findall(r"^## (tracehunch[ \w:]*)\n(.*?)(?=^## |\Z)", text("commands.md"), _LINES))
    assert set(sections) == {typed for typed, _ in reference.commands()}
    for typed, command in reference.commands():
        options = [one for one in command.get_params(click.Context(command)) if isinstance(one, click.Option)]
        for name in (name for one in options for name in (*one.opts, *one.secondary_opts)):
            assert re.search(rf"`{name}[` ]", sections[typed]), (typed, name)


def test_every_key_is_listed_with_its_meaning():
    rows = dict(re.findall(r"^\| `([\w.]+)` \| [^|]+ \| ([^|]+) \|", text("facts.md"), re.MULTILINE))
    assert rows == {key.name: key.meaning for key in KEYS.values()}


def test_every_finding_has_its_page_and_a_row_that_links_to_it():
    ids = {check.ID for check in CHECKS}
    assert set(re.findall(r"^## ([\w-]+)$", text("findings.md"), re.MULTILINE)) == ids
    assert set(re.findall(r"^\| \[([\w-]+)\]", (DOCS / "checks.md").read_text(), re.MULTILINE)) == ids


def test_every_exit_code_is_listed():
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", text("exit-codes.md"), re.MULTILINE)}
    ours = {
        common.FINE,
        common.FOUND,
        failures.USAGE,
        common.LOST,
        failures.INTERRUPTED,
        failures.BROKEN_PIPE,
    }
    assert codes == ours


def test_every_environment_variable_that_the_package_reads_is_listed():
    listed = set(re.findall(r"`([A-Z_]{4,})`", text("environment.md").partition("## Recorded")[0]))
    read = set()
    for path in (ROOT / "src").rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        read |= set(re.findall(r"\benv\w*(?:\.get\(|\[)\"([A-Z_]{4,})\"", source))
    people = {
        "USER",
        "LOGNAME",
        "USERNAME",
        "HOSTNAME",
        "COMPUTERNAME",
    }  # read so as to be left out of traces
    of_pytorch = {name for name in read if name.startswith("TORCH_")}
    assert read - people - of_pytorch <= listed
    assert {"TRACEHUNCH_JOURNAL", "NO_COLOR", "COLUMNS"} <= listed
