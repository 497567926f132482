"""`tokenway cache`: switches the service cache of a fleet, flushes caches, tells what they did."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from rich.console import RenderableType
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as rpc
from tokenway.router.v1 import router_pb2, router_pb2_grpc

from services.launcher.cache_table import Replicas, cache_tables
from services.launcher.operator_call import DEFAULT_AT, TIMEOUT_S, OperatorCall, json_of
from services.launcher.own_certificates import Calling, add_certificates, own_certificates
from services.shared.tls.identity import STREAM_NAME

Ask = Callable[[grpc.aio.Channel, argparse.Namespace, Calling], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Stats:
    """Figures of the whole; of a router also those of each replica."""

    total: pb.GetCacheStatsResponse
    replicas: Replicas


def main(argv: Sequence[str]) -> int:
    return asyncio.run(operate(argv))


async def operate(argv: Sequence[str]) -> int:
    """The command, on an event loop."""
    arguments = _parser().parse_args(argv)
    ask, render, to_json = _ACTIONS[arguments.action]
    certificates = own_certificates(arguments.certificates, arguments.at, os.environ)
    calling = Calling(certificates, STREAM_NAME)
    call = OperatorCall(
        program="tokenway cache",
        callee="router or engine",
        calling=calling,
        ask=lambda channel: ask(channel, arguments, calling),
        render=render,
        json=to_json,
    )
    return await call.run(arguments.at, as_json=arguments.json)


async def _switch(
    channel: grpc.aio.Channel, arguments: argparse.Namespace, _: Calling
) -> pb.SetServiceCacheResponse:
    request = pb.SetServiceCacheRequest(enabled=arguments.action == "on")
    return await rpc.EngineServiceStub(channel).SetServiceCache(request, timeout=TIMEOUT_S)


async def _flush(
    channel: grpc.aio.Channel, arguments: argparse.Namespace, _: Calling
) -> pb.FlushCacheResponse:
    request = pb.FlushCacheRequest(service=arguments.service)
    return await rpc.EngineServiceStub(channel).FlushCache(request, timeout=TIMEOUT_S)


async def _stats(channel: grpc.aio.Channel, _: argparse.Namespace, calling: Calling) -> Stats:
    total, addresses = await asyncio.gather(_told(channel), _replicas_of(channel))
    told = await asyncio.gather(*(_told_at(address, calling) for address in addresses))
    return Stats(total, dict(zip(addresses, told, strict=True)))


async def _told(channel: grpc.aio.Channel) -> pb.GetCacheStatsResponse:
    request = pb.GetCacheStatsRequest()
    return await rpc.EngineServiceStub(channel).GetCacheStats(request, timeout=TIMEOUT_S)


async def _replicas_of(channel: grpc.aio.Channel) -> list[str]:
    """Addresses as the router knows them; an engine has none."""
    stub = router_pb2_grpc.RouterServiceStub(channel)
    try:
        listed = await stub.ListReplicas(router_pb2.ListReplicasRequest(), timeout=TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return []
        raise
    return [replica.address for replica in listed.replicas]


async def _told_at(address: str, calling: Calling) -> pb.GetCacheStatsResponse | str:
    """What a replica tells, or in a word why it does not: the router may be nearer to it."""
    try:
        async with calling.dial(address) as channel:
            return await _told(channel)
    except grpc.aio.AioRpcError as error:
        return error.code().name.lower()


def _json_of_stats(stats: Stats) -> str:
    replicas = {
        address: {"error": told} if isinstance(told, str) else json.loads(json_of(told))
        for address, told in stats.replicas.items()
    }
    return json.dumps({**json.loads(json_of(stats.total)), "replicas": replicas}, indent=2)


def _switched(answer: pb.SetServiceCacheResponse) -> str:
    return f"service cache: {'on' if answer.enabled else 'off'}"


def _flushed(answer: pb.FlushCacheResponse) -> str:
    return (
        f"dropped {answer.dropped_blocks} blocks of the pool, {answer.dropped_host_blocks} of host "
        f"memory, {answer.dropped_service_blocks} of the service cache"
    )


_ACTIONS: dict[str, tuple[Ask, Callable[[Any], RenderableType], Callable[[Any], str]]] = {
    "on": (_switch, _switched, json_of),
    "off": (_switch, _switched, json_of),
    "stats": (_stats, lambda stats: cache_tables(stats.total, stats.replicas), _json_of_stats),
    "flush": (_flush, _flushed, json_of),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tokenway cache", description=__doc__)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--at", default=DEFAULT_AT, help=f"host:port of a router or an engine ({DEFAULT_AT})"
    )
    common.add_argument("--json", action="store_true", help="for programs")
    add_certificates(common)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, words in (
        ("on", "engines use the service cache and each other's blocks"),
        ("off", "from now on they read and write nothing outside of their own memory"),
        ("stats", "what each tier had and had not, and why; blocks by state"),
    ):
        actions.add_parser(name, parents=[common], help=words)
    flush = actions.add_parser(
        "flush", parents=[common], help="drops cached blocks that no generation uses"
    )
    flush.add_argument(
        "--service", action="store_true", help="those of the service cache, too, for all engines"
    )
    return parser
