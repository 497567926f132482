"""One process that the launcher started."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Coroutine, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

from services.launcher import tied
from services.launcher.last_words import last_words
from services.shared.announce import announced

T = TypeVar("T")


class Ended(Exception):
    """A process ended; the text says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """A process to start.

    Attributes:
        service: engine, router or codec.
        name: what it is called towards people, for example `engine 1`.
        command: program and arguments.
        environ: its whole environment.
        ports: for each door (`grpc`, `http`) the variable that sets its port.
    """

    service: str
    name: str
    command: tuple[str, ...]
    environ: Mapping[str, str]
    ports: Mapping[str, str]

    def at(self, doors: Mapping[str, str]) -> Launch:
        """The same process with the ports it had, so that others find it again."""
        held = {
            variable: doors[door].rpartition(":")[2]
            for door, variable in self.ports.items()
            if door in doors
        }
        return replace(self, environ={**self.environ, **held})


class Child:
    """A running process. It dies with the launcher, however that ends.

    Attributes:
        launch: what was started.
        log: where its words on stderr go.
        listening: where it listens, once it has said so.
    """

    def __init__(
        self, launch: Launch, process: asyncio.subprocess.Process, log: Path, log_start: int
    ) -> None:
        self.launch = launch
        self.log = log
        self.listening: Mapping[str, str] = {}
        self._process = process
        self._log_start = log_start

    @classmethod
    async def start(cls, launch: Launch, log_dir: Path) -> Self:
        """Starts the process; what it says on stderr is added to `<log_dir>/<name>.log`."""
        log = log_dir / f"{launch.name.replace(' ', '-')}.log"
        with log.open("ab") as stderr:
            log_start = stderr.tell()
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-S", tied.__file__, str(os.getpid())),
                *launch.command,
                env=launch.environ,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=stderr,
                process_group=0,  # Ctrl-C reaches the launcher alone, which stops them in order
            )
        return cls(launch, process, log, log_start)

    @property
    def pid(self) -> int:
        return self._process.pid

    async def doors(self) -> dict[str, str]:
        """Where it listens, once it says so.

        Raises:
            Ended: it ended before.
        """
        while line := await self._output.readline():
            if (doors := announced(line.decode("utf-8", "replace"))) is not None:
                self.listening = doors
                return doors
        raise Ended(await self.ended())

    async def ended(self) -> str:
        """Waits for the end and tells its cause."""
        while await self._output.read(1 << 16):
            pass
        return last_words(self.log, self._log_start, await self._process.wait())

    async def unless_ended(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of `work`.

        Raises:
            Ended: the process ended before.
        """
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(self._raise_when_ended())
                result = await work
                watch.cancel()
        except ExceptionGroup as group_error:
            raise group_error.exceptions[0] from None
        return result

    async def _raise_when_ended(self) -> None:
        raise Ended(await self.ended())

    async def stop(self, patience_s: float) -> None:
        """Asks the process to end, and ends it when it has not after `patience_s` seconds."""
        if self._process.returncode is not None:
            return
        self._process.terminate()
        try:
            await asyncio.wait_for(self.ended(), patience_s)
        except TimeoutError:
            self.kill()
            await self.ended()

    def kill(self) -> None:
        """Ends the process and what it started, at once."""
        if self._process.returncode is None:
            os.killpg(self._process.pid, signal.SIGKILL)

    @property
    def _output(self) -> asyncio.StreamReader:
        if self._process.stdout is None:
            raise RuntimeError("the process was started without a pipe")
        return self._process.stdout
