"""Write docs/reference/: every command, fact, finding and word, as the package itself tells them.

``python docs/tools/reference.py`` rewrites the pages; a test holds them against what this makes.
"""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import click

import tracehunch.cli
from tracehunch.checks import CHECKS
from tracehunch.cli.main import main
from tracehunch.facts.vocabulary import KEYS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

FOLDER = Path(__file__).parents[1] / "reference"
_RECORDED = {
    "": "anything",
    "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]": "GPU",
    "activities=[ProfilerActivity.CPU]": "CPU",
}
_MADE = "<!-- made by docs/tools/reference.py; edit what it reads -->\n"

_ON_COMMANDS = """\
Results go to standard output, all else to standard error. `-o FILE` picks the format by the file's extension.
[Exit codes](exit-codes.md) are the same for all.

Without a verb: `tracehunch --version` prints the version, `tracehunch --help` the verbs.
"""
_ON_FACTS = """\
A fact has a key, and a claim uses the same key ([hunch.toml](../hunch.md)). Values are per call of a scope:
the median over its calls. What the trace does not show is absent, never zero; the last column says what has
to be recorded. In JSON the keys of times end in `_us`. `tracehunch explain KEY` tells the same in the
terminal.
"""
_ON_RECORDING = """\
GPU: `activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]`. CPU: `activities=[ProfilerActivity.CPU]` will
do.
"""
_ON_FINDINGS = """\
What each check sees, why it costs, how to confirm it, how to fix it, and when it is fine: the pages of
`tracehunch explain ID`. [Checks](../checks.md) says what severity, confidence and time at stake are.
"""


def pages() -> Mapping[str, str]:
    """Return file name -> text."""
    return {
        "commands.md": _commands_page(),
        "facts.md": _facts_page(),
        "findings.md": _findings_page(),
        "words.md": _words_page(),
    }


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield each verb, and each verb of ``guess``, with what is typed for it."""
    context = click.Context(main)
    for verb in main.list_commands(context):
        command = main.get_command(context, verb)
        assert command is not None
        yield f"tracehunch {verb}", command
        for name, one in getattr(command, "commands", {}).items():
            yield f"tracehunch {verb} {name}", one


def _commands_page() -> str:
    text = f"{_MADE}# Commands\n\n{_ON_COMMANDS}"
    return text + "".join(_command(typed, command) for typed, command in commands())


def _command(typed: str, command: click.Command) -> str:
    context = click.Context(command, info_name=typed)
    pieces = command.collect_usage_pieces(context)
    arguments = " ".join(piece for piece in pieces if piece not in typed.split())
    rows = [_option(one, context) for one in command.get_params(context) if isinstance(one, click.Option)]
    table = _table(("option", "what it does"), rows)
    return f"\n## {typed}\n\n`{typed} {arguments}`\n\n{_paragraphs(command.help or '')}\n\n{table}"


def _paragraphs(text: str) -> str:
    text = "\n\n".join(" ".join(part.split()) for part in inspect.cleandoc(text).split("\n\n"))
    return re.sub(r"'((?:tracehunch|torchrun|guess) [^']+)'", r"`\1`", text)


def _option(option: click.Option, context: click.Context) -> Sequence[str]:
    names = [*option.opts, *option.secondary_opts]
    choices = option.type.choices if isinstance(option.type, click.Choice) else ()
    value = "" if option.is_flag else f" {_value(option, context)}"
    record = option.get_help_record(context)
    told = "" if record is None else record[1]
    if choices:
        told += " One of " + ", ".join(f"`{one}`" for one in choices) + "."
    names = [f"`{name}{value if name.startswith('--') else ''}`" for name in names]
    return ", ".join(names), re.sub(r"\s+", " ", told)


def _value(option: click.Option, context: click.Context) -> str:
    if isinstance(option.type, click.Choice):
        return "WHAT"
    return "N" if option.metavar is None else option.make_metavar(context)


def _facts_page() -> str:
    text = f"{_MADE}# Keys of facts\n\n{_ON_FACTS}\n"
    rows = [
        (f"`{key.name}`", _unit(key.unit), key.meaning, _RECORDED.get(key.needs, f"`{key.needs}`"))
        for key in KEYS.values()
    ]
    text += _table(("key", "unit", "meaning", "recorded with"), rows)
    text += f"\n{_ON_RECORDING}"
    details = [f"\n### {key.name}\n\n{key.detail}\n" for key in KEYS.values() if key.detail]
    return text + "\n## How they are counted\n" + "".join(details)


def _unit(unit: str) -> str:
    return {"us": "microseconds", "count": "count", "flop": "FLOPs", "flop/s": "FLOP/s"}.get(unit, unit)


def _findings_page() -> str:
    text = f"{_MADE}# Findings\n\n{_ON_FINDINGS}"
    return text + "".join(_finding(inspect.getdoc(check) or "") for check in CHECKS)


def _finding(text: str) -> str:
    first, _, rest = text.partition("\n")
    name, _, said = first.partition(": ")
    said = said[:1].upper() + said[1:]
    body = re.sub(r"^## (.*)$", r"### \1\n", rest.strip(), flags=re.MULTILINE)
    return f"\n## {name}\n\n{said}\n\n{body}\n"


def _words_page() -> str:
    path = Path(tracehunch.cli.__file__).with_name("glossary.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    text = f"{_MADE}# Words in reports\n\n"
    text += "Notices about a file, columns, kinds of scope: what `tracehunch explain WORD` says.\n\n"
    rows = [
        (", ".join(f"`{one}`" for one in (word, *table.get("also", ()))), table["text"])
        for word, table in tables.items()
    ]
    return text + _table(("word", "what it means"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


if __name__ == "__main__":
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")
