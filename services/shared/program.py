"""A service as a program: arguments, settings, telemetry, signals and the last words."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from services.shared import logs, telemetry
from services.shared.config import BadConfig, load
from services.shared.model_folder import BadModelFolder
from services.shared.server import CannotListen
from services.shared.settings import LogLevel, TelemetrySettings
from services.shared.stop import Stop

REFUSED = 2
"""Exit status of a start that the operator must change something for."""

_log = logging.getLogger(__name__)


class ServiceSettings(Protocol):
    @property
    def telemetry(self) -> TelemetrySettings: ...


S = TypeVar("S", bound=ServiceSettings)


@dataclass(frozen=True, kw_only=True, slots=True)
class Program(Generic[S]):
    """A service.

    Attributes:
        name: engine, router or codec.
        settings: the dataclass that `--config` and the environment fill in.
        aliases: older names of environment variables, each with its dotted key.
        serve: runs the service until it is asked to stop, then drains it and returns.
    """

    name: str
    settings: type[S]
    aliases: Mapping[str, str]
    serve: Callable[[S, Stop], Awaitable[None]]

    def run(self, argv: Sequence[str]) -> int:
        """Runs until SIGTERM or SIGINT and gives the exit status.

        A start that the operator can mend ends with one log line of level error and REFUSED.
        """
        path = config_file(self.name, argv)
        logs.start(self.name, LogLevel.INFO)
        try:
            settings = load(self.settings, path, os.environ, self.aliases)
            telemetry.start(self.name, settings.telemetry)
            asyncio.run(self._until_signalled(settings))
        except (BadConfig, BadModelFolder, CannotListen) as error:
            _log.error("%s", error)
            return REFUSED
        return 0

    async def _until_signalled(self, settings: S) -> None:
        stop = Stop()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.ask)
        await self.serve(settings, stop)


def config_file(name: str, argv: Sequence[str]) -> Path | None:
    """The file that a service's arguments name. Exits with usage where they are none of its."""
    parser = argparse.ArgumentParser(prog=f"tokenway {name}")
    parser.add_argument("--config", type=Path, help="YAML file; the environment goes before it")
    path: Path | None = parser.parse_args(argv).config
    return path
