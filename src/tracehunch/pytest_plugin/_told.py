"""What a test tells the end of the run, in plain values that xdist's workers can send."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Figures = tuple[str, dict[str, Any]]
"""Label of a profile, and its figures by their names in JSON."""


@dataclass(slots=True)
class Told:
    """Figures of the profiles, claims that could not be told (key, scope, reason), baselines (status, path).

    ``broken`` if a claim broke, or a baseline.
    """

    figures: list[Figures] = field(default_factory=list)
    untold: list[tuple[str, str, str]] = field(default_factory=list)
    baselines: list[tuple[str, str]] = field(default_factory=list)
    broken: bool = False

    def packed(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return asdict(self)


def unpacked(plain: Mapping[str, Any]) -> Told:
    """Return what ``packed`` packed; lists for tuples do no harm."""
    return Told(
        figures=[(label, dict(figures)) for label, figures in plain["figures"]],
        untold=[(key, scope, reason) for key, scope, reason in plain["untold"]],
        baselines=[(status, path) for status, path in plain["baselines"]],
        broken=bool(plain["broken"]),
    )
