"""The ops in a generated kernel's name, which joins them with the same ``_`` that their own names hold.

Inductor joins the distinct names in ascending order. So ``gelu_view_view_as_complex`` is gelu, view and
view_as_complex: that splits it into known names, each later in the alphabet than the one before.
"""

from functools import cache, lru_cache
from importlib.resources import files
from typing import Final

_State = tuple[str, int, tuple[str, ...]]
"""Last piece, cost, all pieces."""

_DISORDER: Final = 1000
"""What a piece costs that does not come after the one before it; each piece costs 1."""


@lru_cache(maxsize=4096)
def pieces(joined: str) -> tuple[str, ...]:
    """Return the ops of a joined name, in its order; the fewest that fit. () for ""."""
    if not joined:
        return ()
    starts: dict[int, list[_State]] = {0: [("", 0, ())]}  # by position, the best for each last piece
    for at in range(len(joined)):
        for last, cost, found in starts.pop(at, []):
            for piece in _next(joined, at):
                price = cost + 1 + (_DISORDER if found and piece <= last else 0)
                _keep(starts.setdefault(at + len(piece) + 1, []), (piece, price, (*found, piece)))
    ends = starts.get(len(joined) + 1, [])
    return min(ends, key=lambda one: one[1])[2] if ends else (joined,)


def _keep(states: list[_State], new: _State) -> None:
    for number, (last, cost, _) in enumerate(states):
        if last == new[0]:
            if new[1] < cost:
                states[number] = new
            return
    states.append(new)


def _next(joined: str, at: int) -> list[str]:
    """Return what may stand at a position: one word, maybe with underscores around it, or a known name."""
    words = joined[at:].split("_")
    begin = 1 if len(words) > 1 and not words[0] else 0  # _softmax
    plain = "_" * begin + words[begin]
    found = [plain]
    if len(words) > begin + 2 and not words[begin + 1]:  # copy_ before another
        found.append(f"{plain}_")
    elif len(words) == begin + 2 and not words[begin + 1]:  # copy_ at the end
        found = [f"{plain}_"]
    longest, names = _known()
    for n in range(begin + 2, min(len(words), longest) + 1):
        name = "_".join(words[:n])
        if name in names:
            found.append(name)
    return found


@cache
def _known() -> tuple[int, frozenset[str]]:
    """Names of ops that hold an underscore, and the most parts that one has."""
    text = (files(__package__) / "op_names.txt").read_text(encoding="utf-8")
    names = frozenset(word for line in text.splitlines() if not line.startswith("#") for word in line.split())
    return max(name.count("_") + 1 for name in names), names
