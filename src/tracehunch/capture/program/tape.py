"""The tape: notes every operation of a run as a recorded call, and what could not be known."""

from __future__ import annotations

from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from tracehunch.capture.program.autocast import ENABLED
from tracehunch.capture.program.place import Modules, line
from tracehunch.capture.program.tensors import Arguments, flat, recorded
from tracehunch.predict.program.calls import SDPA, Obstacle, OpCall, Phase

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tracehunch.predict.sdpa import SdpaCall

_OPTIMIZER: Final = "Optimizer."
_FRAMEWORK: Final = (_OPTIMIZER, "## ", "enumerate(")


class Stopped(BaseException):  # no error of the program, and none that it may catch
    """The recording cannot go on."""


class Tape:
    """Takes the calls of one run in order while `on`."""

    def __init__(self, torch: Any, modules: Modules) -> None:
        self.torch = torch
        self.modules = modules
        self.calls: list[OpCall] = []
        self.obstacles: list[Obstacle] = []
        self.on = False
        self._around = ""
        self._built = 0
        self._scopes: list[str] = []
        self._origins: dict[int, tuple[str, str, str]] = {}  # sequence number -> module, its class, line

    def begin(self) -> None:
        """Start to note a run; what was noted of one before is dropped."""
        self.calls.clear()
        self.obstacles[self._built :] = []
        self.on = True

    def built(self) -> None:
        """Note that all obstacles so far are those of building the program: they stay."""
        self._built = len(self.obstacles)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Note nothing for a while: what is done is no part of the run."""
        was, self.on = self.on, False
        try:
            yield
        finally:
            self.on = was

    # ---- what is around a call

    @contextmanager
    def around(self, where: str) -> Iterator[None]:
        """Say which line a compiled graph is from, for what is met with no line on the stack."""
        was, self._around = self._around, where
        try:
            yield
        finally:
            self._around = was

    def enter(self, scope: str) -> None:
        """Note that an annotation begins."""
        self._scopes.append(scope)

    def leave(self) -> None:
        """Note that the innermost annotation ends."""
        if self._scopes:
            self._scopes.pop()

    @property
    def phase(self) -> Phase:
        """What the run is doing."""
        if self.torch._C._current_graph_task_id() != -1:  # noqa: SLF001  # nothing public tells
            return "backward"
        return "optimizer" if any(one.startswith(_OPTIMIZER) for one in self._scopes) else "forward"

    def _origin(self, phase: Phase) -> tuple[str, str, str]:
        """Return module, its class and line; those of the forward call for its backward."""
        module, kind = self.modules.innermost
        if phase == "backward" and not module and not kind:
            node = self.torch._C._current_autograd_node()  # noqa: SLF001  # nothing public tells
            found = None if node is None else self._origins.get(node._sequence_nr())  # noqa: SLF001  # torch has no public way
            return found or ("", "", line())
        origin = (module, kind, line())
        if self.torch.is_grad_enabled():
            made = self.torch._C._autograd._get_sequence_nr() - 1  # noqa: SLF001  # as torch.fx does
            self._origins.setdefault(made, origin)
        return origin

    # ---- calls

    def note(self, func: Any, arguments: Arguments, made: Any, pinned: tuple[str, ...] | None = None) -> None:
        """Note a call of an operator and what it returned."""
        name, overload = func._schema.name, func._overloadname  # noqa: SLF001  # torch has no public schema
        overload = "" if overload == "default" else overload
        self._add(name, arguments.tensors, made, overload=overload, options=arguments.options, pinned=pinned)

    def note_attention(
        self, call: SdpaCall, tensors: list[Any], made: Any, pinned: tuple[str, ...] | None, phase: Phase
    ) -> None:
        """Note a call of SDPA, or its backward; a checkpoint calls it forward while a backward runs."""
        self._add(SDPA, tensors, made, sdpa=call, pinned=pinned, phase=phase)

    def note_kernel(self, name: str, tensors: list[Any]) -> None:
        """Note a launch of a kernel that the compiler generated, and the tensors that it is given."""
        self._add(name, tensors, ())

    def note_named(self, name: str, tensors: list[Any], made: Any) -> None:
        """Note what is no operator, by a name."""
        self._add(name, tensors, made)

    def _add(
        self,
        op: str,
        tensors: list[Any],
        made: Any,
        *,
        overload: str = "",
        options: Mapping[str, Any] | None = None,
        sdpa: SdpaCall | None = None,
        pinned: tuple[str, ...] | None = None,
        phase: Phase | None = None,
    ) -> None:
        if not self.on:
            return
        phase = phase or self.phase
        module, kind, where = self._origin(phase)
        outputs = list(flat(made, self.torch.is_tensor))
        self.calls.append(
            OpCall(
                op=op,
                overload=overload,
                tensors=tuple(recorded(one) for one in tensors),
                devices=tuple(one.device.type for one in tensors),
                options=MappingProxyType(dict(options or {})),
                outputs=tuple(recorded(one) for one in outputs),
                output_devices=tuple(one.device.type for one in outputs),
                sdpa=sdpa,
                module=module,
                module_type=kind,
                phase=phase,
                scopes=tuple(one for one in self._scopes if not one.startswith(_FRAMEWORK)),
                line=where,
                pinned=pinned,
                autocast=ENABLED.get(),
            )
        )

    # ---- obstacles

    def obstacle(self, reason: str, remedy: str = "") -> None:
        """Note what is not known, and go on."""
        self._tell(reason, remedy, stops=False)

    @property
    def stopped(self) -> bool:
        """Whether the recording could not go on."""
        return any(one.stops for one in self.obstacles)

    def stop(self, reason: str, remedy: str = "", where: str = "") -> Stopped:
        """Note why nothing more is known; the caller raises what is returned. `where`: the line, if past."""
        self._tell(reason, remedy, stops=True, where=where)
        self.on = False
        return Stopped(reason)

    def _tell(self, reason: str, remedy: str, *, stops: bool, where: str = "") -> None:
        told = Obstacle(reason, self.modules.innermost[0], where or line() or self._around, stops, remedy)
        if told not in self.obstacles:
            self.obstacles.append(told)
