"""What torch.compile made: regions, generated kernels, graph breaks, compilations."""

from tracehunch.facts.column import Column, Words
from tracehunch.facts.compiled.breaks import breaks_column
from tracehunch.facts.compiled.merged import fused_words
from tracehunch.facts.compiled.regions import regions_columns
from tracehunch.facts.compiled.units import kernels_column
from tracehunch.facts.compiled.when import compile_columns
from tracehunch.facts.context import Context


def columns(context: Context) -> list[Column]:
    """Return the counts and times per call."""
    return [
        *regions_columns(context),
        *kernels_column(context),
        *breaks_column(context),
        *compile_columns(context),
    ]


def words(context: Context) -> list[Words]:
    """Return for each scope what was merged in its generated kernels."""
    return fused_words(context)
