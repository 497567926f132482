"""The token stream of an engine or a router, as a service asks it that has token IDs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import grpc
from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.stream.v1.stream_pb2_grpc import TokenStreamServiceStub
from tokenway.types.v1 import types_pb2 as types

from services.shared.channel import open_channel
from tests.kv.caller import NOBODY, Caller


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """An output to its end, and where its prompt was found."""

    ids: tuple[int, ...]
    cached: types.CachedTokens
    timeline: types.Timeline

    @property
    def by_tier(self) -> tuple[int, int, int, int]:
        """Cached tokens of the device, host, peer and service tier."""
        found = self.cached
        return found.device, found.host, found.peer, found.service


def request_of(
    prompt_ids: Sequence[int], *, tokens: int = 8, caller: Caller = NOBODY, peer: str | None = None
) -> pb.GenerateRequest:
    """A seeded output of so many tokens.

    Args:
        prompt_ids: the prompt.
        tokens: of the output.
        caller: who asks.
        peer: where the blocks are said to be.
    """
    return pb.GenerateRequest(
        prompt_ids=prompt_ids,
        sampling=types.Sampling(seed=5),
        stopping=types.Stopping(max_tokens=tokens, ignore_eos=True),
        quality_of_service=types.QualityOfService(tenant=caller.tenant),
        cache=types.CacheControl(salt=caller.salt),
        routing=types.RoutingHints(prefill_peer=peer),
    )


class TokenDoor:
    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = TokenStreamServiceStub(channel)

    async def ask(self, request: pb.GenerateRequest) -> Told:
        """All tokens that were asked for; raises grpc.aio.AioRpcError."""
        tokens = request.stopping.max_tokens
        ids: list[int] = []
        cached, finished = types.CachedTokens(), pb.Finished()
        async for response in self._stub.Generate(request, wait_for_ready=True):
            match response.WhichOneof("event"):
                case "accepted":
                    cached = response.accepted.cached_tokens
                case "tokens":
                    assert response.tokens.first_position == len(ids)
                    ids += response.tokens.token_ids
                case "finished":
                    finished = response.finished
        assert len(ids) == tokens, f"{tokens} tokens were asked for, {len(ids)} came"
        return Told(ids=tuple(ids), cached=cached, timeline=finished.timeline)


@asynccontextmanager
async def token_door(address: str) -> AsyncIterator[TokenDoor]:
    async with open_channel(address) as channel:
        yield TokenDoor(channel)
