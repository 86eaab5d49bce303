"""A section of a page: what is read without JavaScript, and the data that scripts make more of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Section:
    """`html` is complete without scripts. `data` goes into a block of its own, "data-" and the section's id.

    `scripts` and `styles` are names of files in `assets`, without what follows the dot. `aside` stands beside
    the title.
    """

    id: str
    title: str
    html: str
    aside: str = ""
    data: Any = None
    scripts: tuple[str, ...] = ()
    styles: tuple[str, ...] = ()
