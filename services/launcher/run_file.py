"""What `tokenway up` started, written down for commands that look for it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from services.launcher.child import Child
from services.launcher.process_start import process_start

NAME = "run.json"
_REMEDY = "start the services by `tokenway up`, or name the folder of its logs by --log-dir"


class NotRunning(Exception):
    """There is no stack of `tokenway up`; the text says what was looked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """One process.

    Attributes:
        service: engine, router or codec.
        name: as `tokenway up` calls it.
        pid: its process ID, which may be another's by now.
        started: when it was started, as `process_start` tells it.
        doors: where it listens, `grpc` and `http`.
    """

    service: str
    name: str
    pid: int
    started: int | None
    doors: Mapping[str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """All that was started; `url` is the codec's."""

    url: str
    services: Sequence[Running]


class RunFile:
    """The file in the folder of the logs; there while the services run."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME

    def write(self, url: str, children: Sequence[Child]) -> None:
        """Whoever reads it meanwhile sees the old or the new one."""
        own = os.getpid()
        running = [asdict(_running(child)) for child in children]
        told = {"pid": own, "started": process_start(own), "url": url, "services": running}
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(told, indent=1) + "\n")
        new.replace(self.path)

    def remove(self) -> None:
        """Unless another launcher has put its own there."""
        with suppress(OSError, ValueError):
            if json.loads(self.path.read_text())["pid"] == os.getpid():
                self.path.unlink()

    def read(self) -> Run:
        """Raises NotRunning where the file is missing or left from a run that is over."""
        try:
            told: dict[str, Any] = json.loads(self.path.read_text())
            launcher = (told["pid"], told["started"])
            run = Run(url=told["url"], services=[Running(**one) for one in told["services"]])
        except FileNotFoundError:
            raise NotRunning(f"{self.path} is not there; {_REMEDY}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise NotRunning(f"{self.path} cannot be read ({error}); {_REMEDY}") from None
        if process_start(launcher[0]) != launcher[1]:
            raise NotRunning(f"{self.path} is of a run that is over; {_REMEDY}")
        return run


def _running(child: Child) -> Running:
    launch = child.launch
    return Running(
        service=launch.service,
        name=launch.name,
        pid=child.pid,
        started=process_start(child.pid),
        doors=dict(child.listening),
    )
