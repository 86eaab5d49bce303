"""Phrases that several checks use."""

from tracehunch.facts.model import Facts
from tracehunch.kernels import vendor_hint
from tracehunch.tree import Tree, source_line
from tracehunch.units import printable


def at_source(tree: Tree, row: int) -> str:
    """``, at file.py(12): function`` to end a sentence with; empty without stacks."""
    found = source_line(tree, row)
    return f", at {printable(found, 200)}" if found else ""


def is_amd(facts: Facts) -> bool:
    """Whether the trace is from AMD GPUs, whose units have other names and whose traces lack registers."""
    return any(vendor_hint(device.properties) == ("amd",) for device in facts.tree.trace.header.devices)
