"""Findings that a guess knows: they were there when it was made, so they are no news, and explain none."""

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from tracehunch.guess.model import Guess
from tracehunch.guess.write import writable
from tracehunch.units import count
from tracehunch.verdict import Finding

_COUNTED: Final = re.compile(r"(?P<what>.*) x(?P<n>[0-9][0-9,.]*)", re.DOTALL)


def known_of(findings: Iterable[Finding]) -> tuple[str, ...]:
    """Return what a guess made of these findings knows of them: each once, sorted, as a file can hold it."""
    return tuple(sorted({one for finding in findings if writable(one := known_as(finding))}))


def known_as(finding: Finding) -> str:
    """Return what a guess calls a finding: ``hidden-copy in attn_fwd: aten::masked_fill x1``.

    The number is that of activities in a call of the scope.
    """
    return f"{_what(finding)} x{count(finding.per_call)}" if finding.per_call else _what(finding)


def is_known(finding: Finding, guess: Guess) -> bool:
    """Tell whether a finding was there when the guess was made, and has not grown since.

    An entry without an op (``hidden-copy in attn_fwd``), as people may write, knows all of that id and scope.
    """
    if f"{finding.id} in {finding.scope}" in guess.known or known_as(finding) in guess.known:
        return True
    return 0 < finding.per_call <= _known_per_call(finding, guess)


def new_findings(findings: Iterable[Finding], guess: Guess) -> tuple[Finding, ...]:
    """Leave out the findings that a guess knows."""
    return tuple(finding for finding in findings if not is_known(finding, guess))


def grown(findings: Iterable[Finding], guess: Guess) -> tuple[Finding, ...]:
    """Return the findings that a guess does not know, with ``per_call`` by how much each of them grew."""
    return tuple(
        replace(one, per_call=max(one.per_call - _known_per_call(one, guess), 0.0))
        for one in new_findings(findings, guess)
    )


def _known_per_call(finding: Finding, guess: Guess) -> float:
    parts = [part for part in map(_COUNTED.fullmatch, guess.known) if part is not None]
    return max((_number(part["n"]) for part in parts if part["what"] == _what(finding)), default=0.0)


def _what(finding: Finding) -> str:
    where = f"{finding.id} in {finding.scope}"
    return f"{where}: {finding.subject}" if finding.subject else where


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:  # two points, as no count has
        return 0.0
