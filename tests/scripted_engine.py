"""An engine that plays given tokens: the real servicer over loopback, and nothing computed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
from tokenway.engine.v1 import engine_pb2 as engine_pb
from tokenway.engine.v1 import engine_pb2_grpc as engine_rpc
from tokenway.stream.v1 import stream_pb2_grpc as stream_rpc

from services.shared.errors import ServiceError
from services.shared.server import serving
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    Cancel,
    CancelReason,
    Failed,
    Finished,
    FinishReason,
    Logprobs,
    Timeline,
    Tokens,
    Usage,
)
from services.shared.stream.generation import Generation
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.servicer import TokenStreamServicer
from services.shared.stream.source import Submission

ENGINE_SERVICE = "tokenway.engine.v1.EngineService"
STREAM_SERVICE = "tokenway.stream.v1.TokenStreamService"

Step = list[int] | FinishReason | Failed | asyncio.Event
"""Tokens that leave together, an end, a failure, or a wait for the test."""

Script = Callable[[Generation], Sequence[Step]]


@dataclass(kw_only=True)
class ScriptedEngine:
    """Plays the script's steps for each generation; max_tokens holds, the rest of it is ignored.

    Args:
        script: may raise a ServiceError, which refuses the generation.
        cached_tokens: told for each prompt.
        accepts: whether generations are accepted before the first step.
        routed: why they came here, as a router says it.
        refusing, expected_wait_ms: told as load; generations that come are played all the same.
        timeline: told of each generation that ends.
    """

    script: Script
    describes: engine_pb.DescribeResponse
    cached_tokens: int = 0
    accepts: bool = True
    routed: str = ""
    refusing: bool = False
    expected_wait_ms: int = 0
    timeline: Timeline = field(default_factory=Timeline)
    submissions: list[Submission] = field(default_factory=list)
    cancels: list[CancelReason] = field(default_factory=list)
    state: ReplicaState = ReplicaState.READY
    _playing: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def generations(self) -> list[Generation]:
        return [submission.generation for submission in self.submissions]

    def submit(self, submission: Submission) -> Cancel:
        steps = self.script(submission.generation)
        self.submissions.append(submission)
        playing = asyncio.get_running_loop().create_task(self._play(submission, steps))
        self._playing.add(playing)
        playing.add_done_callback(self._playing.discard)

        def cancel(reason: CancelReason) -> None:
            self.cancels.append(reason)
            playing.cancel()

        return cancel

    def load(self) -> Load:
        return Load(
            state=self.state, refusing=self.refusing, expected_wait_ms=self.expected_wait_ms
        )

    async def _play(self, submission: Submission, steps: Sequence[Step]) -> None:
        generation, sink = submission.generation, submission.sink
        prompt_tokens, limit = len(generation.prompt_ids), generation.stopping.max_tokens
        position = 0
        if self.accepts:
            cached = CachedTokens(device=min(self.cached_tokens, prompt_tokens))
            sink(
                Accepted(
                    prompt_tokens=prompt_tokens, cached_tokens=cached, seed=1, routed=self.routed
                )
            )
        for step in [*steps, FinishReason.END_OF_TEXT]:
            # As an engine does, it lets go of the loop between two steps.
            await asyncio.sleep(0)
            at_limit = position == limit
            match step:
                case asyncio.Event():
                    await step.wait()
                case Failed():
                    sink(step)
                    return
                case FinishReason():
                    sink(self._finished(step, prompt_tokens, position))
                    return
                case list() if not at_limit:
                    ids = step[: None if limit is None else limit - position]
                    sink(Tokens(position, ids, _logprobs(ids, generation.output.logprobs)))
                    position += len(ids)
                case _:
                    sink(self._finished(FinishReason.MAX_TOKENS, prompt_tokens, position))
                    return

    def _finished(self, reason: FinishReason, prompt_tokens: int, completion: int) -> Finished:
        cached = min(self.cached_tokens, prompt_tokens)
        usage = Usage(
            prompt_tokens=prompt_tokens, cached_tokens=cached, completion_tokens=completion
        )
        return Finished(reason=reason, usage=usage, timeline=self.timeline)


def _logprobs(ids: list[int], top: int | None) -> Logprobs | None:
    """The drawn token is the most likely; the next IDs follow it."""
    if top is None:
        return None
    return Logprobs(
        chosen=[-0.5] * len(ids),
        top_token_ids=[token + at for token in ids for at in range(top)],
        top_logprobs=[-0.5 - at for _ in ids for at in range(top)],
    )


class _EngineServicer(engine_rpc.EngineServiceServicer):
    def __init__(self, engine: ScriptedEngine) -> None:
        self._engine = engine

    async def Describe(  # noqa: N802 named by the contract
        self,
        request: engine_pb.DescribeRequest,  # noqa: ARG002
        context: Any,  # noqa: ARG002
    ) -> engine_pb.DescribeResponse:
        return self._engine.describes


@asynccontextmanager
async def serving_engine(
    engine: ScriptedEngine,
    address: str = "127.0.0.1:0",
    credentials: grpc.ServerCredentials | None = None,
) -> AsyncIterator[str]:
    """Gives the address."""

    def register(server: grpc.aio.Server) -> None:
        stream_rpc.add_TokenStreamServiceServicer_to_server(TokenStreamServicer(engine), server)
        servicer = _EngineServicer(engine)  # type: ignore[abstract]  # the rest is UNIMPLEMENTED
        engine_rpc.add_EngineServiceServicer_to_server(servicer, server)

    names = [STREAM_SERVICE, ENGINE_SERVICE]
    async with serving(address, register, names, grace_s=0, credentials=credentials) as door:
        yield door.address


def refusing(error: ServiceError) -> Script:
    def script(_: Generation) -> Sequence[Step]:
        raise error

    return script
