"""``tracehunch explain NAME``: a kernel's name, a finding or a fact in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tracehunch.cli import common
from tracehunch.cli.failures import did_you_mean
from tracehunch.cli.options import debug_option
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.facts.vocabulary import Key

if TYPE_CHECKING:
    from collections.abc import Mapping


@click.command("explain", context_settings={"ignore_unknown_options": True})  # "->" is part of names
@click.argument("name", nargs=-1, required=True)
@debug_option
def explain(name: tuple[str, ...]) -> int:
    """Explain NAME in words: a GPU kernel's name, the id of a finding, or the key of a fact.

    Quote kernel names: they hold characters that a shell would act on.
    """
    word = " ".join(name).strip()
    text = _kernel(word) or _findings().get(word) or _facts().get(word) or _unknown_kernel(word)
    if text is None:
        raise common.unknown_name("kernel rule, finding or fact for", word, [*_findings(), *_facts()])
    common.emit("".join(f"{printable(line)}\n" for line in text.rstrip().splitlines()), None)
    return common.FINE


def _kernel(word: str) -> str | None:
    """Return what the rules say of a kernel's name; None where they know nothing."""
    from tracehunch.kernels import classify_activity, explain  # noqa: PLC0415  # rules are read only when needed

    kind = {"Memcpy": "memcpy", "Memset": "memset"}.get(word[:6], "kernel")
    return explain(word) if classify_activity(word, kind).classified else None


def _unknown_kernel(word: str) -> str | None:
    """Return what a name that no rule knows shows; None if it is none, or a misspelt word of ours."""
    from tracehunch.kernels import explain  # noqa: PLC0415  # as above

    if not any(mark in word for mark in "_:<(") or did_you_mean(word, [*_findings(), *_facts()]):
        return None
    return explain(word)


def _findings() -> Mapping[str, str]:
    from tracehunch.checks import pages  # noqa: PLC0415  # numpy loads with the checks

    return pages()


def _facts() -> Mapping[str, str]:
    from tracehunch.facts.vocabulary import KEYS  # noqa: PLC0415  # as above

    return {key.name: _fact(key) for key in KEYS.values()} | {
        key.json_name: _fact(key) for key in KEYS.values()
    }


def _fact(key: Key) -> str:
    lines = [key.name, f"  meaning      {key.meaning}", f"  unit         {key.unit}, per call of a scope"]
    lines += [f"  in JSON      {key.json_name}"] if key.json_name != key.name else []
    lines += [f"  record with  {key.needs}"] if key.needs else []
    return "\n".join(lines)
