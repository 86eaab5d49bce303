"""What several checks ask of the same trace, worked out once for each."""

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from tracehunch.facts.model import Facts

if TYPE_CHECKING:
    from tracehunch.tree import Ownership

T = TypeVar("T")


def once(work: Callable[[Facts], T]) -> Callable[[Facts], T]:
    """Make a function of facts remember what it returned for each trace.

    It does so by the ownership of the tree, which lives as long as the facts do. What is returned must not
    refer to the facts or the tree, or neither is ever freed, and must not be changed by those who get it.
    """
    made: WeakKeyDictionary[Ownership, T] = WeakKeyDictionary()

    @wraps(work)
    def remembered(facts: Facts) -> T:
        key = facts.tree.ownership
        if key not in made:
            made[key] = work(facts)
        return made[key]

    return remembered
