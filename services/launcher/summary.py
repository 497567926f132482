"""What `tokenway up` decided, in a few lines, and a request to paste."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from tokenway.engine.v1 import engine_pb2, engine_pb2_grpc

from services.engine.kv.cache_settings import CacheType
from services.launcher.dev_key import KEY
from services.launcher.fleet import Addresses
from services.launcher.mesh import Mesh
from services.launcher.plan import Plan
from services.launcher.up_options import UpOptions
from services.shared.tls.identity import Role, server_name

TIMEOUT_S = 10.0


async def summary(addresses: Addresses, plan: Plan) -> str:
    """Asks the first engine what it serves.

    Args:
        addresses: where the services listen.
        plan: what was started.
    """
    mesh = plan.mesh
    dial = mesh.calling(server_name(Role.ENGINE)).dial
    async with dial(addresses.engines[0]) as channel:
        stub = engine_pb2_grpc.EngineServiceStub(channel)
        engine = await stub.Describe(engine_pb2.DescribeRequest(), timeout=TIMEOUT_S)
        stats = await stub.GetCacheStats(engine_pb2.GetCacheStatsRequest(), timeout=TIMEOUT_S)
    load = engine.load
    kept = load.total_blocks * engine.block_size
    lines = [
        f"model    {engine.model} ({engine.model_fingerprint[:12]}) on {engine.device}",
        f"context  {engine.context_length} tokens, vocabulary {engine.vocabulary_size}",
        f"blocks   {load.total_blocks} of {engine.block_size} tokens per engine: {kept} tokens",
        f"cache    {_cache(stats.type, plan)}",
        f"threads  {plan.threads()} per engine, {_engines(plan.options)}",
        f"mesh     {_mesh(mesh)}",
        f"ports    http {addresses.http}, grpc {addresses.grpc}, router {addresses.router}, "
        f"engine {', '.join(addresses.engines)}",
        f"metrics  {_metrics(addresses)}",
    ]
    return "\n".join([*lines, "", _request(addresses.url, engine.model, _key_file(plan))])


def _metrics(addresses: Addresses) -> str:
    return ", ".join(f"{name} {', '.join(doors)}" for name, doors in addresses.metrics.items())


def _engines(options: UpOptions) -> str:
    if not options.prefill:
        return f"{options.engines} engine(s)"
    return f"{options.engines} engines: {options.replicas} decode, {options.prefill} prefill"


def _cache(told: str, plan: Plan) -> str:
    """Where blocks are kept.

    Args:
        told: its type, by the engine's word.
        plan: what the engine was asked to use.
    """
    settings = plan.cache()
    if told != settings.type:
        return f"{told}, since {settings.type} cannot be used: the engine's log tells why"
    match settings.type:
        case CacheType.EMBEDDED:
            return f"embedded in {settings.embedded.path}, for all engines of this machine"
        case CacheType.DISTRIBUTED:
            return f"distributed on {', '.join(settings.distributed.nodes)}"
        case CacheType.NONE:
            folder = plan.unusable_folder()
            return "none" if folder is None else f"none, since {folder} cannot be written"


def _key_file(plan: Plan) -> Path | None:
    return plan.options.key_dir / KEY if plan.asks_for_dev_key else None


def _mesh(mesh: Mesh) -> str:
    if not mesh.mtls:
        return "IN THE CLEAR: whoever is on this machine may speak with all services"
    return f"mutual TLS, certificates in {mesh.made or 'folders of their own'}"


def _request(url: str, model: str, key: Path | None) -> str:
    """Reads the key where it is pasted, so that no terminal keeps it."""
    shown = "" if key is None else f'-H "Authorization: Bearer $(cat {shlex.quote(str(key))})" '
    message = {"role": "user", "content": "Why is the sky blue?"}
    body = json.dumps({"model": model, "messages": [message], "stream": True})
    return (
        f"curl -N {url}/v1/chat/completions {shown}"
        f"-H 'content-type: application/json' -d {shlex.quote(body)}"
    )
