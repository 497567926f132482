"""What happened in a chaos run, in order, as lines of JSON that can be judged again."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from time import monotonic
from typing import Any

from tests.chaos.verdict import Verdict


class History:
    """Grows by one line for each thing that happened; in `file` too, where one is given."""

    def __init__(self, file: Path | None = None) -> None:
        self.entries: list[dict[str, Any]] = []
        self._began = monotonic()
        self._file = None if file is None else file.open("w")

    def note(self, what: str, **fields: Any) -> None:
        entry = {"t": round(monotonic() - self._began, 3), "what": what, **fields}
        self.entries.append(entry)
        if self._file is not None:
            self._file.write(json.dumps(entry) + "\n")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()


def broken(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """What a history shows that must not be: nothing, in a good one."""
    faults: list[str] = []
    asked: Counter[str] = Counter()
    told: Counter[str] = Counter()
    for entry in entries:
        match entry["what"]:
            case "asked":
                asked[entry["request"]] += 1
            case "told":
                told[entry["request"]] += 1
                if entry["verdict"] not in (Verdict.EXACT, Verdict.FAILED):
                    faults.append(f"{entry['request']} is {entry['verdict']}: {entry['why']}")
            case "left":
                faults.append(entry["left"])
    faults += [
        f"{request} was asked {times} times" for request, times in asked.items() if times > 1
    ]
    faults += [f"{name} has no end" for name in asked.keys() - told.keys()]
    faults += [f"{name} was told {times} times" for name, times in told.items() if times > 1]
    return faults


def figures(entries: Iterable[Mapping[str, Any]]) -> list[str]:
    """A table of faults and outcomes."""
    counts: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        match entry["what"]:
            case "fault":
                counts["faults", entry["fault"]] += 1
            case "told":
                counts["requests", entry["verdict"]] += 1
                counts["by door", f"{entry['door']}, {entry['verdict']}"] += 1
                if entry["verdict"] == Verdict.FAILED:
                    counts["reasons", entry["why"]] += 1
            case "continued":
                counts["continued", "answers"] += entry["answers"]
    width = max((len(name) for _, name in counts), default=0)
    order = ("faults", "requests", "by door", "reasons", "continued")
    return [
        f"{head:10}{name:{width}} {count:7}"
        for head in order
        for (kind, name), count in sorted(counts.items())
        if kind == head
    ]
