"""Where replicas are found: in the settings, behind names of DNS, in a file that may change."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from services.router.replica_spec import ReplicaSpec
from services.shared.config import BadConfig, load

_log = logging.getLogger(__name__)


class SourceFault(Exception):
    """A source that cannot tell now; the text says why."""


class ReplicaSource(Protocol):
    """Names replicas, others at another time."""

    async def find(self) -> Sequence[ReplicaSpec]:
        """Those of now. Raises SourceFault."""


@dataclass(frozen=True, slots=True)
class Fixed:
    """Replicas that stand in the settings."""

    replicas: Sequence[ReplicaSpec]

    async def find(self) -> Sequence[ReplicaSpec]:
        return self.replicas


@dataclass(frozen=True, slots=True)
class Name:
    """All addresses of a host's name; each is a replica, with the weight and pool of the name."""

    named: ReplicaSpec

    async def find(self) -> Sequence[ReplicaSpec]:
        host, _, port = self.named.address.rpartition(":")
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                host.strip("[]"), int(port), type=socket.SOCK_STREAM
            )
        except OSError as error:
            raise SourceFault(f"{host} has no address: {error.strerror}") from error
        addresses = sorted({_address(family, where) for family, _, _, _, where in found})
        return [replace(self.named, address=address) for address in addresses]


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaList:
    """What the file holds: `replicas`, written as in the router's own settings."""

    replicas: tuple[ReplicaSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class ReplicaFile:
    """A YAML file, read again at each time."""

    path: Path

    async def find(self) -> Sequence[ReplicaSpec]:
        try:
            listed = await asyncio.to_thread(load, ReplicaList, self.path, {}, {})
        except BadConfig as error:
            raise SourceFault(str(error)) from error
        return listed.replicas


def sources_of(
    replicas: Sequence[ReplicaSpec], names: Sequence[ReplicaSpec], file: Path | None
) -> list[ReplicaSource]:
    """What the settings name: fixed replicas, names, a file."""
    return [Fixed(replicas), *map(Name, names), *([] if file is None else [ReplicaFile(file)])]


class Discovery:
    """Asks all sources; one that cannot tell counts with what it told last.

    So neither an outage of DNS nor a file that is half written takes a replica away.
    """

    def __init__(self, sources: Sequence[ReplicaSource]) -> None:
        self._sources = sources
        self._told: list[Sequence[ReplicaSpec]] = [()] * len(sources)
        self._faults = [""] * len(sources)

    async def find(self) -> dict[str, ReplicaSpec]:
        """Replicas by address; where two sources name one, the first counts."""
        for number, source in enumerate(self._sources):
            try:
                self._told[number] = await source.find()
                self._faults[number] = ""
            except SourceFault as fault:
                self._note(number, str(fault))
        found: dict[str, ReplicaSpec] = {}
        for specs in self._told:
            for spec in specs:
                found.setdefault(spec.address, spec)
        return found

    def _note(self, number: int, fault: str) -> None:
        """Logs a fault once while it stays the same."""
        if fault != self._faults[number]:
            self._faults[number] = fault
            _log.error("replicas stay as they were: %s", fault)


def _address(family: int, where: Sequence[object]) -> str:
    host, port = where[:2]
    return f"[{host}]:{port}" if family == socket.AF_INET6 else f"{host}:{port}"
