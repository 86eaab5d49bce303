"""``tracehunch explain NAME...``: a kernel's name, a finding, a fact or a word of a report in words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import click

from tracehunch.cli import common
from tracehunch.cli.failures import did_you_mean
from tracehunch.cli.glossary import glossary, in_columns, op_page, titles, wrapped
from tracehunch.cli.options import debug_option
from tracehunch.errors import TracehunchError
from tracehunch.units import printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracehunch.facts.vocabulary import Key


_OP: Final = re.compile(r"[A-Za-z_]\w*::[A-Za-z_][\w.]*")


@click.command("explain", context_settings={"ignore_unknown_options": True})  # "->" is part of names
@click.argument("names", nargs=-1, metavar="[NAME]...")
@debug_option
def explain(names: tuple[str, ...]) -> int:
    """Explain each NAME in words; without one, list the words there are.

    A NAME is a GPU kernel's name, the id of a finding, the key of a fact, or any other word that tracehunch
    prints: a notice's code, a column, a kind of scope. Quote kernel names: they hold characters that a shell
    would act on.
    """
    if not names:
        common.emit("".join(_listed()), None)
        return common.FINE
    whole = " ".join(names).strip()
    text = _known(whole)  # a name that a shell took apart, such as Memcpy DtoD (Device -> Device)
    texts = [text] if text is not None else [_known(name.strip()) for name in names]
    if len(names) == 1 or all(text is None for text in texts):
        texts = [text or _unknown_kernel(whole)]
    unknown = [at for at, text in enumerate(texts) if text is None]
    if unknown:
        word = whole if len(texts) == 1 else names[unknown[0]]
        raise _unknown(word)
    common.emit("\n".join(_printed(text) for text in texts if text is not None), None)
    return common.FINE


def _unknown(word: str) -> TracehunchError:
    meant = did_you_mean(word, [*_findings(), *_facts(), *glossary()]).removeprefix("; ")
    todo = meant or "tracehunch explain lists the words there are"
    return TracehunchError(f"no kernel rule, finding, fact or word for {word!r}", todo=todo)


def _listed() -> Iterator[str]:
    """Yield the words that have a page, by kind, in columns."""
    from tracehunch.facts.vocabulary import KEYS  # noqa: PLC0415  # as below

    kinds = {
        "Findings": list(_findings()),
        "Facts": list(KEYS),
        "Other words": sorted(titles(), key=str.lower),
    }
    for kind, words in kinds.items():
        yield f"{kind}\n{in_columns(words)}\n"
    yield "Also the name of any GPU kernel, quoted.\n"


def _known(word: str) -> str | None:
    """Return the page of a word that something is known about."""
    page = _kernel(word) or _findings().get(word) or _facts().get(word) or glossary().get(word.lower())
    return page or (op_page(word) if _OP.fullmatch(word) else None)


def _printed(text: str) -> str:
    return "".join(f"{printable(line)}\n" for line in text.rstrip().splitlines())


def _kernel(word: str) -> str | None:
    """Return what the rules say of a kernel's name; None where they know nothing."""
    from tracehunch.kernels import classify_activity, explain  # noqa: PLC0415  # rules are read only when needed

    kind = {"Memcpy": "memcpy", "Memset": "memset"}.get(word[:6], "kernel")
    return explain(word) if classify_activity(word, kind).classified else None


def _unknown_kernel(word: str) -> str | None:
    """Return what a name that no rule knows shows; None if it is none, or a misspelt word of ours."""
    from tracehunch.kernels import explain  # noqa: PLC0415  # as above

    if not any(mark in word for mark in "_:<(") or did_you_mean(word, [*_findings(), *_facts(), *glossary()]):
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
    lines += [wrapped(key.detail)] if key.detail else []
    return "\n".join(lines)
