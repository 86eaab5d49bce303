"""Run a program once without a GPU, as if on one, and record every operation that it would call there."""

from tracehunch.capture.program.record import record_call, record_program

__all__ = ["record_call", "record_program"]
