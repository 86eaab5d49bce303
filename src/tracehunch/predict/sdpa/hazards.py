"""Hazards: calls of SDPA that are known to give wrong results, errors, or a bad surprise in time or memory.

They stand in `hazards.toml`. An entry has
    id, test        what it is called, and the predicate of `hazard_tests.py` that recognises it
    kind            "correctness", "error", "speed" or "memory"
    severity        "warning", or "note" where it depends on what the call does not show
    words, do       what goes wrong and what to do, with slots as in `words.py`
    links           where it was reported
    since, until    the first and last torch version that has it (absent: the first, the last known)
    in_trace        how bad it is that a trace shows such a call ("error": results are wrong);
                    absent: a trace does not show it, or another finding does
    certain         true where the configuration alone decides, false where values do too
    of_cudnn        true where it depends on the version of cuDNN
    of_backward     true where it is the backward that goes wrong
All other keys are numbers for the predicate.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any, Final, Literal

from tracehunch.predict.environment import Environment
from tracehunch.predict.releases import Version, parse_version, releases
from tracehunch.predict.sdpa.call import SdpaCall
from tracehunch.predict.sdpa.dispatch import predict_sdpa
from tracehunch.predict.sdpa.hazard_tests import TESTS, Test
from tracehunch.predict.sdpa.prediction import SdpaPrediction
from tracehunch.predict.sdpa.words import hazard_slots

FINDING: Final = "sdpa-known-hazard"
"""The id under which reports show hazards."""

Kind = Literal["correctness", "error", "speed", "memory"]
Severity = Literal["warning", "note"]

_MATCHED: Final = ("id", "test", "kind", "severity", "words", "do", "links", "since", "until")
_IN_TRACES: Final = ("in_trace", "certain", "of_cudnn", "of_backward")
_KEYS: Final = frozenset({*_MATCHED, *_IN_TRACES})


@dataclass(frozen=True, slots=True)
class Hazard:
    """What is known to go wrong with a call, what to do, and where it was reported.

    `in_trace`, `certain`, `of_cudnn` and `of_backward` are as the table has them.
    """

    id: str
    kind: Kind
    severity: Severity
    words: str
    todo: str
    links: tuple[str, ...]
    in_trace: Literal["error", "warning", "note"] | None = None
    certain: bool = False
    of_cudnn: bool = False
    of_backward: bool = False

    def __str__(self) -> str:
        return f"{self.words}; {self.todo} ({self.links[0]})"


@dataclass(frozen=True, slots=True)
class _Entry:
    """One row of the table."""

    id: str
    test: Test
    numbers: Mapping[str, Any]
    kind: Kind
    severity: Severity
    words: str
    todo: str
    links: tuple[str, ...]
    since: Version | None
    until: Version | None
    in_trace: Literal["error", "warning", "note"] | None
    certain: bool
    of_cudnn: bool
    of_backward: bool


@lru_cache(maxsize=1)
def _entries() -> tuple[_Entry, ...]:
    text = (files(__package__) / "hazards.toml").read_text(encoding="utf-8")
    return tuple(
        _Entry(
            id=table["id"],
            test=TESTS[table["test"]],
            numbers={key: value for key, value in table.items() if key not in _KEYS},
            kind=table["kind"],
            severity=table["severity"],
            words=table["words"],
            todo=table["do"],
            links=tuple(table["links"]),
            since=parse_version(table["since"]) if "since" in table else None,
            until=parse_version(table["until"]) if "until" in table else None,
            in_trace=table.get("in_trace"),
            certain=table.get("certain", False),
            of_cudnn=table.get("of_cudnn", False),
            of_backward=table.get("of_backward", False),
        )
        for table in tomllib.loads(text)["hazard"]
    )


def hazards(call: SdpaCall, env: Environment, prediction: SdpaPrediction | None = None) -> tuple[Hazard, ...]:
    """Return the known hazards of a call, warnings first; none for versions that are not known.

    `prediction` is that of the call in the same environment, where it was made before.
    """
    if env.torch not in releases() or call.nested:
        return ()
    known = predict_sdpa(call, env) if prediction is None else prediction
    found = [
        entry
        for entry in _entries()
        if (entry.since is None or entry.since <= env.torch)
        and (entry.until is None or env.torch <= entry.until)
        and entry.test(call, env, known, entry.numbers)
    ]
    if not found:
        return ()
    slots = hazard_slots(call, env, known)
    made = [
        Hazard(
            id=entry.id,
            kind=entry.kind,
            severity=entry.severity,
            words=entry.words.format_map(slots),
            todo=entry.todo.format_map(slots),
            links=entry.links,
            in_trace=entry.in_trace,
            certain=entry.certain,
            of_cudnn=entry.of_cudnn,
            of_backward=entry.of_backward,
        )
        for entry in found
    ]
    return tuple(sorted(made, key=lambda hazard: hazard.severity != "warning"))
