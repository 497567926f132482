"""What `tokenway up` decided, in five lines, and a request to paste."""

from __future__ import annotations

import json
import shlex

from tokenway.engine.v1 import engine_pb2, engine_pb2_grpc

from services.launcher.fleet import Addresses
from services.shared.channel import open_channel

DESCRIBE_TIMEOUT_S = 10.0


async def summary(addresses: Addresses, threads: int) -> str:
    """Asks the first engine what it serves.

    Args:
        addresses: where the services listen.
        threads: of each engine.
    """
    engine = await _describe(addresses.engines[0])
    load = engine.load
    kept = load.total_blocks * engine.block_size
    lines = [
        f"model    {engine.model} ({engine.model_fingerprint[:12]}) on {engine.device}",
        f"context  {engine.context_length} tokens, vocabulary {engine.vocabulary_size}",
        f"blocks   {load.total_blocks} of {engine.block_size} tokens per engine: {kept} tokens",
        f"threads  {threads} per engine, {len(addresses.engines)} engine(s)",
        f"ports    http {addresses.http}, grpc {addresses.grpc}, router {addresses.router}, "
        f"engine {', '.join(addresses.engines)}",
    ]
    return "\n".join([*lines, "", _request(addresses.http, engine.model)])


def _request(address: str, model: str) -> str:
    message = {"role": "user", "content": "Why is the sky blue?"}
    body = json.dumps({"model": model, "messages": [message], "stream": True})
    return (
        f"curl -N http://{address}/v1/chat/completions -H 'content-type: application/json' "
        f"-d {shlex.quote(body)}"
    )


async def _describe(address: str) -> engine_pb2.DescribeResponse:
    async with open_channel(address) as channel:
        stub = engine_pb2_grpc.EngineServiceStub(channel)
        return await stub.Describe(engine_pb2.DescribeRequest(), timeout=DESCRIBE_TIMEOUT_S)
