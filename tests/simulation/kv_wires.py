"""Calls from one engine to another in virtual time; what they carry is the real messages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any, Protocol

import grpc
from tokenway.kv.v1 import kv_pb2 as pb

from services.engine.kv.servicer import KvServicer
from services.shared.errors import ServiceError
from tests.simulation.virtual_time import VirtualLoop

END = object()
"""What a stream ends with, instead of a message."""

Metadata = Sequence[tuple[str, str]]

Spoil = Callable[[pb.FetchResponse], pb.FetchResponse | None]
"""Another message in its place; None breaks the call off."""


class Lender(Protocol):
    """An engine's process, as others reach it.

    Attributes:
        on_end: called when the process has ended.
    """

    servicer: KvServicer
    on_end: dict[object, Callable[[], None]]


Reach = Callable[[str], Lender | None]
"""The process of a name; None while it is dead. It raises KeyError where nobody is called so."""


class KvWires:
    """The network between engines.

    Args:
        reach: finds the process of a name.
        is_open: whether what is sent from there arrives.

    Attributes:
        extra_s: added to each message's time under way.
        spoil: changes the next message.
    """

    def __init__(
        self,
        loop: VirtualLoop,
        random: Random,
        delay_s: float,
        reach: Reach,
        is_open: Callable[[str], bool],
    ) -> None:
        self.loop = loop
        self.reach = reach
        self.is_open = is_open
        self.extra_s = 0.0
        self.spoil: Spoil | None = None
        self._random = random
        self._delay_s = delay_s

    async def pass_on(self, peer: str) -> None:
        """A message is under way; where nothing arrives it stays so."""
        await asyncio.sleep(self._delay_s * (0.5 + self._random.random()) + self.extra_s)
        if not self.is_open(peer):
            await asyncio.Event().wait()


class Channels:
    """One engine's connections to others; stands for `PeerChannels`.

    Args: may_call: asked before each call.
    """

    def __init__(self, wires: KvWires, may_call: Callable[[], None]) -> None:
        self._wires = wires
        self._may_call = may_call

    @contextmanager
    def to(self, peer: str) -> Iterator[Channel]:
        self._may_call()
        yield Channel(self._wires, peer)

    async def close(self) -> None:
        """They have no end of their own."""


class Channel:
    """What a stub asks of a channel."""

    def __init__(self, wires: KvWires, peer: str) -> None:
        self._wires = wires
        self._peer = peer

    def unary_unary(self, _: str, **__: object) -> object:
        return None

    def unary_stream(self, _: str, **__: object) -> Callable[[pb.FetchRequest], Call]:
        return partial(Call, self._wires, self._peer)

    def get_state(self) -> grpc.ChannelConnectivity:
        up = self._wires.reach(self._peer) is not None
        return grpc.ChannelConnectivity.READY if up else grpc.ChannelConnectivity.TRANSIENT_FAILURE


@dataclass(frozen=True)
class Context:
    """What a servicer asks of the context of a call."""

    metadata: Metadata

    def invocation_metadata(self) -> Metadata:
        return self.metadata


class Call:
    """A fetch: the servicer's messages arrive one after the other."""

    def __init__(
        self, wires: KvWires, peer: str, request: pb.FetchRequest, metadata: Metadata = ()
    ) -> None:
        self._wires = wires
        self._context: Any = Context(metadata)
        self._peer = peer
        self._arrived: asyncio.Queue[object] = asyncio.Queue()
        self._task = wires.loop.create_task(self._carry(request))

    async def read(self) -> object:
        """The next message, or the end of the stream."""
        arrived = await self._arrived.get()
        if isinstance(arrived, BaseException):
            raise arrived
        return arrived

    def cancel(self) -> bool:
        self._task.cancel()
        self._arrived.put_nowait(asyncio.CancelledError())
        return True

    async def _carry(self, request: pb.FetchRequest) -> None:
        try:
            await self._serve(request)
        except ServiceError as error:
            self._arrived.put_nowait(_failure(grpc.StatusCode[error.code.name], error.message))

    async def _serve(self, request: pb.FetchRequest) -> None:
        await self._wires.pass_on(self._peer)
        lender = self._wires.reach(self._peer)
        if lender is None:
            self._break()
            return
        lender.on_end[self] = self._break
        try:
            messages = lender.servicer.Fetch(request, self._context)
            async for message in messages:
                spoil, self._wires.spoil = self._wires.spoil, None
                told = message if spoil is None else spoil(message)
                await self._wires.pass_on(self._peer)
                if told is None:
                    self._break()
                    return
                self._arrived.put_nowait(told)
            await self._wires.pass_on(self._peer)
            self._arrived.put_nowait(END)
        finally:
            lender.on_end.pop(self, None)
            await messages.aclose()  # type: ignore[attr-defined]  # it is a generator

    def _break(self) -> None:
        """Nobody is there, or not any more."""
        self._arrived.put_nowait(_failure(grpc.StatusCode.UNAVAILABLE, "nobody is there"))
        if asyncio.current_task(self._wires.loop) is not self._task:
            self._task.cancel()


def _failure(code: grpc.StatusCode, text: str) -> grpc.aio.AioRpcError:
    nothing = grpc.aio.Metadata()
    return grpc.aio.AioRpcError(code, nothing, nothing, text, None)
