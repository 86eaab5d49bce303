"""Engines: the same small task on every file of a job, in processes here or on a Dask cluster.

Every engine gives the same results in the same order: nothing in them tells who computed them, or when.
"""

from tracehunch.engines.run import ENGINES, run

__all__ = ["ENGINES", "run"]
