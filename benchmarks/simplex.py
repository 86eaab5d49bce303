"""Minimise a function of a few numbers without derivatives: the downhill simplex."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


def minimise(
    cost: Callable[[Vector], float], start: Vector, *, step: float = 0.25, rounds: int = 400
) -> Vector:
    """Return where a function is least near a start, after so many rounds of one or two evaluations."""
    points = [np.asarray(start, dtype=np.float64)]
    points += [points[0] + step * unit for unit in np.eye(len(points[0]))]
    values = [cost(point) for point in points]
    for _ in range(rounds):
        order = np.argsort(values)
        points, values = [points[i] for i in order], [values[i] for i in order]
        centre = np.mean(points[:-1], axis=0)
        mirrored = centre + (centre - points[-1])
        value = cost(mirrored)
        if value < values[0]:
            further = centre + 2 * (centre - points[-1])
            reached = cost(further)
            points[-1], values[-1] = (further, reached) if reached < value else (mirrored, value)
        elif value < values[-2]:
            points[-1], values[-1] = mirrored, value
        else:
            nearer = centre + 0.5 * (points[-1] - centre)
            reached = cost(nearer)
            if reached < values[-1]:
                points[-1], values[-1] = nearer, reached
            else:
                points = [points[0] + 0.5 * (point - points[0]) for point in points]
                values = [cost(point) for point in points]
    return points[int(np.argmin(values))]
