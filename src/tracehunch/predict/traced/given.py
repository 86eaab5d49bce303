"""What the ops of SDPA calls were given, read for all of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehunch.predict.traced.recorded import RecordedCall, recorded_call, unread

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehunch.trace.model import Int64, OpInputs, Trace


class Given:
    """The inputs of some ops; calls that are alike are put together once."""

    def __init__(self, trace: Trace, rows: Int64) -> None:
        code, inputs = trace.inputs_of(rows)
        self._trace = trace
        self._code = dict(zip(rows.tolist(), code.tolist(), strict=True))
        self._args = [_args(one) for one in inputs]
        self._calls: dict[tuple[str, int, bool | None], RecordedCall | None] = {}

    def args(self, row: int) -> Mapping[str, Any]:
        """Return the part of an op's args that says what it was called with."""
        return self._args[self._code[row]]

    def call(self, row: int, *, grad: bool | None) -> RecordedCall | None:
        """Read the call that an op is; None where the trace does not tell."""
        key = self._trace.name_of(row), self._code[row], grad
        if key not in self._calls:
            found = recorded_call(key[0], self.args(row))
            self._calls[key] = None if found is None else found.with_grad(grad)
        return self._calls[key]

    def unread(self, row: int) -> str:
        """Say why there is no call."""
        return unread(self._trace.name_of(row), self.args(row))


def _args(inputs: OpInputs) -> Mapping[str, Any]:
    return {
        "Input Dims": inputs.dims,
        "Input type": inputs.types,
        "Input Strides": inputs.strides,
        "Concrete Inputs": inputs.values,
    }
