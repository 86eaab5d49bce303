"""File or bytes -> Trace; the only place that knows the keys of Kineto's JSON."""

from tracehunch.trace.model import Cat, Device, Notice, Recorded, Trace
from tracehunch.trace.read import read, read_bytes

__all__ = ["Cat", "Device", "Notice", "Recorded", "Trace", "read", "read_bytes"]
