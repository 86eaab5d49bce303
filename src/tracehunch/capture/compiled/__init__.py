"""Let torch.compile's own Inductor compile a program for a GPU that is not there, and run what it wrote."""

from tracehunch.capture.compiled.record import record_compiled, record_compiled_call

__all__ = ["record_compiled", "record_compiled_call"]
