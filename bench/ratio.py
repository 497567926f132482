"""A ratio that a benchmark measured, as a line that people and programs read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE = re.compile(r"ratio (?P<name>[^ ]+) (?P<value>[0-9.e+-]+)(?: \(aim (?P<aim>.+)\))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Ratio:
    """`name` has no blanks; `aim` is what the value should be, such as `>= 4`."""

    name: str
    value: float
    aim: str | None = None

    def __str__(self) -> str:
        aim = "" if self.aim is None else f" (aim {self.aim})"
        return f"ratio {self.name} {self.value:.3g}{aim}"


def ratios(lines: str) -> Iterator[Ratio]:
    """The ratios among a benchmark's lines of output, in their order."""
    for line in lines.splitlines():
        if found := _LINE.fullmatch(line.strip()):
            yield Ratio(name=found["name"], value=float(found["value"]), aim=found["aim"])
