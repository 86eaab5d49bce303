"""The figures of a profile: for JUnit's properties, the end of the run, the report of a failed test."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any, Final

from tracehunch.facts.vocabulary import KEYS
from tracehunch.report import terminal
from tracehunch.report.layout import View
from tracehunch.report.summary import Selection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tracehunch.pytest_plugin._profiled import Profiled
    from tracehunch.pytest_plugin._told import Figures

_ON_GPU: Final = ("kernels", "copies", "copy_kernels", "memsets", "gpu_time", "sdpa.backend")
_ON_CPU: Final = ("leaf_ops", "cpu_time", "sdpa.backend")
_NARROWEST, _WIDEST = 60, 100
_TOP: Final = 6  # kernels or ops listed of each scope


def figures_of(profile: Profiled) -> Figures:
    """Return the label and the figures by their names in JSON (times in microseconds)."""
    on_gpu = bool(profile.scope.kernels)
    found: dict[str, Any] = {}
    for key in _ON_GPU if on_gpu else _ON_CPU:
        value = profile.scope.value(key)
        if value is not None and value != "none":
            found[KEYS[key].json_name] = ", ".join(value) if isinstance(value, tuple) else value
    return profile.label, found


def properties(figures: Iterable[Figures]) -> list[tuple[str, object]]:
    """Return them as properties of a test: ``tracehunch.attn_fwd.kernels`` = 5."""
    return [
        (f"tracehunch.{label}.{name}", value) for label, found in figures for name, value in found.items()
    ]


def sections(profiles: Iterable[Profiled]) -> list[tuple[str, str]]:
    """Return title and text of what a failed test shows of each profile: the verdict, findings, kernels."""
    return [(f"tracehunch: {one.label}", _report(one)) for one in profiles if one.readable]


def _report(profile: Profiled) -> str:
    scopes = [one.scope.name for one in profile.look.facts.scopes if one.scope.kind == "annotation"]
    chosen = (profile.label, *(one for one in scopes if one != profile.label))
    selection = Selection(scopes=chosen, top=_TOP)
    columns = shutil.get_terminal_size().columns
    view = View(width=max(_NARROWEST, min(columns, _WIDEST)), interactive=True)
    return terminal.render(profile.look, view=view, selection=selection, source=str(profile.trace_path))
