"""The fixture's object: profiles a function's calls, a block, or a whole test."""

from __future__ import annotations

import functools
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, overload

from tracehunch.capture.labelled import record_block, record_calls
from tracehunch.capture.quoting import annotation_name
from tracehunch.capture.recorder import Recording
from tracehunch.errors import TracehunchError
from tracehunch.pytest_plugin._names import path_of
from tracehunch.pytest_plugin._profiled import Profiled

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from pathlib import Path

STEPS: Final = 3
FIRST: Final = 1
"""Calls before the profiler starts, for what happens only once; two more go to its own schedule."""


class Hunch:
    """Profiles what a test names: ``p = hunch(function, *args, **kwargs)``, or ``with hunch("label") as p:``.

    A function is called ``warmup`` + 2 + ``steps`` times (1 + 2 + 3 unless the marker says otherwise), of
    which the last ``steps`` are recorded; facts are medians per call. A block is recorded once, as it is.
    """

    def __init__(self, nodeid: str, folder: Path, options: Mapping[str, Any], *, strict: bool) -> None:
        self.profiles: list[Profiled] = []
        self._nodeid, self._folder, self._strict = nodeid, folder, strict
        self._options = options

    def __repr__(self) -> str:
        return f"<hunch of {self._nodeid}: {len(self.profiles)} profiled>"

    @overload
    def __call__(self, what: str, /) -> AbstractContextManager[Profiled]: ...
    @overload
    def __call__(self, what: Callable[..., Any], /, *args: object, **kwargs: object) -> Profiled: ...
    def __call__(
        self, what: str | Callable[..., Any], /, *args: object, **kwargs: object
    ) -> Profiled | AbstractContextManager[Profiled]:
        """Profile the calls of a function, or make a block of a ``with`` that is profiled.

        Raises:
            CaptureError: PyTorch is not there, or another profiler runs.

        """
        __tracebackhide__ = True
        if isinstance(what, str):
            if args or kwargs:
                raise TracehunchError(
                    f"hunch({what!r}, ...) takes a label only",
                    "",
                    'write hunch(function, ...) or with hunch("label"):',
                )
            return self.block(what)
        if not callable(what):
            raise TracehunchError(
                f"{what!r} cannot be called",
                "",
                'write hunch(function, argument, ...) or with hunch("label"):',
            )
        return self._calls(what, *args, **kwargs)

    @contextmanager
    def block(self, label: str) -> Iterator[Profiled]:
        """Profile a block, once."""
        profile = self._new(label)
        with record_block(
            profile.trace_path, profile.label, self._recording(skip=0, warmup=0, from_start=True)
        ):
            yield profile
        profile.finished()

    def _calls(self, function: Callable[..., Any], *args: object, **kwargs: object) -> Profiled:
        __tracebackhide__ = True
        profile = self._new(_name(function) or self._nodeid.rpartition("::")[2].partition("[")[0])
        profile.finished(
            record_calls(
                functools.partial(function, *args, **kwargs),
                profile.trace_path,
                profile.label,
                self._recording(skip=1, warmup=1, steps=self._options.get("steps", STEPS)),
                first=self._options.get("warmup", FIRST),
            )
        )
        return profile

    def _recording(self, **schedule: Any) -> Recording:
        return Recording(
            shapes=self._options.get("shapes", True),
            stacks=self._options.get("stacks", False),
            memory=self._options.get("memory", False),
            **schedule,
        )

    def _new(self, named: str) -> Profiled:
        """Return the next profile, under a label that no other of this test has."""
        label = annotation_name(named) if named.strip() else "profile"
        taken = {one.label for one in self.profiles}
        unique = next(
            one for n in range(1, len(taken) + 2) if (one := label if n == 1 else f"{label} {n}") not in taken
        )
        path = self._folder / f"{path_of(self._nodeid, unique if taken else '')}.json.gz"
        made = Profiled(unique, path, strict=self._strict)
        self.profiles.append(made)
        return made


def _name(function: Callable[..., Any]) -> str:
    """Return what a function is called, "" if it has no name: that of a module is its class."""
    if isinstance(function, functools.partial):
        return _name(function.func)
    name = getattr(function, "__name__", "") or type(function).__name__
    return "" if name == "<lambda>" else str(name)
