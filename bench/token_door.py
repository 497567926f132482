"""A token stream service as benchmarks ask it: when did tokens come, and from where."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field

import grpc
from tokenway.engine.v1 import engine_pb2, engine_pb2_grpc
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as rpc
from tokenway.types.v1 import types_pb2 as types

from services.shared.channel import open_channel

POLL_S = 0.02


@dataclass(slots=True)
class Output:
    """Times are on one clock; a token and its arrival have the same place.

    `fetch_s`: until its blocks had come from elsewhere.
    """

    asked: float
    arrivals: list[float] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    cached: types.CachedTokens = field(default_factory=types.CachedTokens)
    fetch_s: float = 0.0

    @property
    def first_token_s(self) -> float:
        return self.arrivals[0] - self.asked


class TokenDoor:
    """Args: address: of an engine or a router."""

    def __init__(self, address: str) -> None:
        self.channel: grpc.aio.Channel = open_channel(address)
        self._stream = rpc.TokenStreamServiceStub(self.channel)
        self._engine = engine_pb2_grpc.EngineServiceStub(self.channel)

    async def generate(
        self, prompt_ids: Sequence[int], max_tokens: int, peer: str | None = None
    ) -> Output:
        """A greedy output of exactly so many tokens; raises RuntimeError if it is another."""
        request = pb.GenerateRequest(
            prompt_ids=prompt_ids,
            sampling=types.Sampling(temperature=0),
            stopping=types.Stopping(max_tokens=max_tokens, ignore_eos=True),
            routing=types.RoutingHints(prefill_peer=peer),
        )
        output = Output(asked=time.perf_counter())
        async for response in self._stream.Generate(request, wait_for_ready=True):
            if response.HasField("accepted"):
                output.cached = response.accepted.cached_tokens
            elif response.HasField("tokens"):
                now = time.perf_counter()
                output.ids += response.tokens.token_ids
                output.arrivals += [now] * len(response.tokens.token_ids)
            elif response.HasField("finished"):
                output.fetch_s = response.finished.timeline.fetch_us / 1e6
        if len(output.ids) != max_tokens:
            raise RuntimeError(f"{max_tokens} tokens were asked for, {len(output.ids)} came")
        return output

    async def stats(self) -> engine_pb2.GetCacheStatsResponse:
        return await self._engine.GetCacheStats(engine_pb2.GetCacheStatsRequest())

    async def load(self) -> types.Load:
        described = await self._engine.Describe(engine_pb2.DescribeRequest())
        return described.load

    async def until(self, holds: Callable[[], Awaitable[bool]], patience_s: float = 60) -> None:
        """Returns when it holds; raises TimeoutError if it does not in time."""
        async with asyncio.timeout(patience_s):
            while not await holds():  # noqa: ASYNC110  # another process's state
                await asyncio.sleep(POLL_S)

    async def close(self) -> None:
        await self.channel.close(None)
