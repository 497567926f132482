"""A service that tests kill, stop and start again at the same address."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager
from typing import Any

from tests.integration.stack import Launcher, Service, Settings


def request_of(name: str) -> str:
    """The request that a generation of that name is an output of."""
    return name.removesuffix("-0").removesuffix("-1")


class Mortal:
    """One service over all its lives. `start` takes as long as the service needs to listen.

    Args:
        launcher: starts it.
        name: as `Launcher.running` has it.
        settings: its own; the port of its first life stays.
    """

    def __init__(self, launcher: Launcher, name: str, settings: Settings) -> None:
        self.name = name
        self._launcher = launcher
        self._settings: dict[str, Any] = dict(settings)
        self._life: AbstractContextManager[Service] | None = None
        self._service: Service | None = None

    @property
    def service(self) -> Service:
        """Its present or last life."""
        assert self._service is not None, f"{self.name} was never started"
        return self._service

    @property
    def address(self) -> str:
        return self.service.grpc

    def received(self) -> set[str]:
        """The requests that it was sent in all its lives, by its log."""
        lines = self.service.lines(message="prompt received")
        return {request_of(line["request_id"]) for line in lines}

    def start(self) -> None:
        self.close()
        life = self._launcher.running(self.name, self._settings)
        self._service = life.__enter__()
        self._life = life
        self._settings["server"] = {"port": int(self.address.rpartition(":")[2])}

    def kill(self) -> None:
        """At once; what it was about to send is lost."""
        self.service.process.kill()

    def suspend(self) -> None:
        """It holds its connections and does nothing."""
        self.service.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.service.process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Ends it, unless it is dead already."""
        if self._life is not None:
            self.resume()
            life, self._life = self._life, None
            life.__exit__(None, None, None)
