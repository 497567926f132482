"""The way to servers: how they are called, and how long a connection is good for new work."""

from __future__ import annotations

import asyncio
from typing import Protocol

import grpc

from services.shared.tls.dial import in_the_clear


class Way(Protocol):
    """To servers of one kind, wherever they listen."""

    @property
    def version(self) -> int:
        """Of what we show; a channel that was made under another one gets no new work."""

    def dial(self, address: str) -> grpc.aio.Channel:
        """A channel to `host:port`, which the caller closes."""

    async def worn(self, version: int) -> None:
        """Returns when a connection that begins now should give way to another one.

        Args: version: under which its channel was made.
        """


class _Clear:
    """Nothing is shown, so nothing wears."""

    version = 0

    def dial(self, address: str) -> grpc.aio.Channel:
        return in_the_clear(address)

    async def worn(self, version: int) -> None:  # noqa: ARG002  # there is one alone
        await asyncio.Event().wait()


CLEAR: Way = _Clear()
"""Without certificates."""
