"""Pictures as SVG: no script needed; wider than a small screen, they scroll in their frame."""

from __future__ import annotations

from tracehunch.report.html.escape import text


def chart(css: str, width: int, height: int, label: str, drawn: str) -> str:
    """Return a picture of a size in its own units, told to those who do not see it by its label."""
    return (
        f'<div class="chart"><svg class="{css}" viewBox="0 0 {width} {height}" role="img" '
        f'aria-label="{text(label)}">{drawn}</svg></div>'
    )
