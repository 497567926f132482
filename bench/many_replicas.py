"""Replicas without a model in one process: each generation gets a token at each beat."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import grpc
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.stream.v1 import stream_pb2_grpc as stream_rpc

from services.shared.announce import announce
from services.shared.health import Readiness
from services.shared.server import serving
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    Cancel,
    CancelReason,
    Finished,
    FinishReason,
    Tokens,
    Usage,
)
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.servicer import TokenStreamServicer
from services.shared.stream.source import Submission

SLOTS = 64


class Beating:
    """A token source; one block of its load's total tells that it is there."""

    def __init__(self) -> None:
        self._running: dict[int, tuple[Submission, int]] = {}
        self._next = 0

    def submit(self, submission: Submission) -> Cancel:
        key, self._next = self._next, self._next + 1
        self._running[key] = submission, -1

        def cancel(_: CancelReason) -> None:
            self._running.pop(key, None)

        return cancel

    def load(self) -> Load:
        return Load(
            state=ReplicaState.READY,
            running=len(self._running),
            total_blocks=1,
            free_blocks=1,
            slots=SLOTS,
        )

    def beat(self) -> None:
        for key, (submission, position) in list(self._running.items()):
            generation = submission.generation
            limit = generation.stopping.max_tokens
            if position < 0:
                count = len(generation.prompt_ids)
                submission.sink(Accepted(prompt_tokens=count, cached_tokens=CachedTokens(), seed=1))
                self._running[key] = submission, len(generation.generated_ids)
            elif limit is not None and position >= limit:
                del self._running[key]
                usage = Usage(prompt_tokens=1, cached_tokens=0, completion_tokens=position)
                submission.sink(Finished(reason=FinishReason.MAX_TOKENS, usage=usage))
            else:
                submission.sink(Tokens(position, [position % 50_000]))
                self._running[key] = submission, position + 1


async def describe(_: pb.DescribeRequest, __: Any) -> pb.DescribeResponse:
    return pb.DescribeResponse(
        model="bench", model_fingerprint="bench", tokenizer_fingerprint="bench"
    )


def register(source: Beating, server: grpc.aio.Server) -> None:
    stream_rpc.add_TokenStreamServiceServicer_to_server(TokenStreamServicer(source), server)
    description = grpc.unary_unary_rpc_method_handler(
        describe,
        request_deserializer=pb.DescribeRequest.FromString,
        response_serializer=pb.DescribeResponse.SerializeToString,
    )
    name = pb.DESCRIPTOR.services_by_name["EngineService"].full_name
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(name, {"Describe": description}),)
    )


async def serve(count: int, beat_s: float) -> None:
    """Serves until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    sources = [Beating() for _ in range(count)]
    async with AsyncExitStack() as stack:
        doors = [
            await stack.enter_async_context(
                serving("127.0.0.1:0", partial(register, source), (), grace_s=0)
            )
            for source in sources
        ]
        for door in doors:
            await door.health.set(Readiness.READY)
        announce({str(number): door.address for number, door in enumerate(doors)})
        beating = asyncio.ensure_future(_beat(sources, beat_s))
        await stop.wait()
        beating.cancel()


async def _beat(sources: Sequence[Beating], beat_s: float) -> None:
    """All sources once a beat, evenly spread over it; a beat that is late is not made up for."""
    clock = asyncio.get_running_loop()
    while True:
        began = clock.time()
        for number, source in enumerate(sources, 1):
            source.beat()
            await asyncio.sleep(max(0.0, began + beat_s * number / len(sources) - clock.time()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True, help="JSON: count and beat_s")
    options = parser.parse_args()
    config = json.loads(options.config.read_text("utf-8"))
    asyncio.run(serve(config["count"], config["beat_s"]))


if __name__ == "__main__":
    main()
