"""What commands show: of texts that others chose, only what can be seen."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment

from services.shared.plain_text import escaped


class Harmless:
    """Something to be shown, of which no character moves a cursor or changes a colour.

    Rich takes its own marks from texts where it is told to, but lets through those of a terminal.
    """

    def __init__(self, shown: RenderableType) -> None:
        self._shown = shown

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for segment in console.render(self._shown, options):
            if segment.control or segment.text.isprintable():
                yield segment
            else:
                lines = segment.text.split("\n")  # an end of a line is Rich's own
                yield Segment("\n".join(map(escaped, lines)), segment.style)


def terminal(least_width: int) -> Console:
    """Of stdout; a narrower one breaks lines, rather than that we cut what stands in them."""
    console = Console(highlight=False, markup=False)
    console.width = max(console.width, least_width)
    return console


def show(shown: RenderableType, least_width: int) -> None:
    terminal(least_width).print(Harmless(shown))
