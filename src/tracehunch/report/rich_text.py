"""Lines of a report for rich: a renderable that takes the console's width."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehunch.report.layout import Line, Span, View, in_ascii

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.text import Text


class RichReport:
    """What ``__rich__`` returns: draws itself as wide as it may; no markup in it is ever parsed."""

    def __init__(self, lines: Callable[[View], Sequence[Line]]) -> None:
        self._lines = lines

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        del console
        view = View(width=options.max_width, unicode=not options.ascii_only, interactive=True)
        for line in self._lines(view):
            yield _text(line, view)


def _text(line: Line, view: View) -> Text:
    from rich.text import Text  # noqa: PLC0415  # slow to load, and only who calls this has it loaded

    text = Text(overflow="fold")  # only a command is longer than a line, and is kept whole
    for part in line:
        span = Span(part) if isinstance(part, str) else part
        text.append(span.text if view.unicode else in_ascii(span.text), style=span.style or None)
    return text
