"""Predicate: what a check tests."""

from collections.abc import Callable, Mapping
from typing import Any

from tracehunch.predict.environment import Environment
from tracehunch.predict.sdpa.call import SdpaCall

Answer = bool | str
"""True: the call passes. False: it is refused. Text: what would have to be known to tell."""

Predicate = Callable[[SdpaCall, Environment, Mapping[str, Any]], Answer]
"""Answers to a call in an environment, with the numbers of its check.

It must not fail on any call: one that another check refuses for its number of dimensions passes.
"""
