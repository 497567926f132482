"""`tokenway top`: what a router and its replicas have to do, live."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Sequence
from time import monotonic

import grpc
from rich.console import Console
from rich.live import Live
from tokenway.router.v1 import router_pb2 as pb
from tokenway.router.v1 import router_pb2_grpc as rpc

from services.launcher.operator_call import DEFAULT_AT, TIMEOUT_S, OperatorCall, json_of
from services.launcher.own_certificates import Calling, add_certificates, own_certificates
from services.launcher.terminal import Harmless
from services.launcher.top_view import Moment, top_view
from services.shared.bounds import within
from services.shared.tls.identity import Role, server_name


def main(argv: Sequence[str]) -> int:
    try:
        return asyncio.run(watch(argv))
    except KeyboardInterrupt:
        return 0


async def watch(argv: Sequence[str]) -> int:
    """Shows it until it is cancelled; once where that is asked for or nobody is at a terminal."""
    arguments = _parser().parse_args(argv)
    console = Console(highlight=False, markup=False)
    once = arguments.once or arguments.json or not console.is_terminal

    async def ask(channel: grpc.aio.Channel) -> Moment:
        stub = rpc.RouterServiceStub(channel)
        return await (_moment(stub) if once else _watch(stub, console, arguments.interval))

    call = OperatorCall(
        program="tokenway top",
        callee="router",
        calling=Calling(
            own_certificates(arguments.certificates, arguments.at, os.environ),
            server_name(Role.ROUTER),
        ),
        ask=ask,
        render=top_view,
        json=lambda moment: json_of(moment.told),
    )
    return await call.run(arguments.at, as_json=arguments.json)


async def _watch(stub: rpc.RouterServiceStub, console: Console, interval_s: float) -> Moment:
    """Until cancelled. A router that does not answer any more is asked on."""
    now, before, fault = await _moment(stub), None, None
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(Harmless(top_view(now, before, fault)), refresh=True)
            await asyncio.sleep(interval_s)
            try:
                now, before, fault = await _moment(stub), now, None
            except grpc.aio.AioRpcError as error:
                fault = error.details() or error.code().name


async def _moment(stub: rpc.RouterServiceStub) -> Moment:
    told = await stub.ListReplicas(pb.ListReplicasRequest(), timeout=TIMEOUT_S)
    return Moment(at_s=monotonic(), told=told)


def _interval(text: str) -> float:
    seconds = float(text)
    try:
        within("the interval", seconds, 0.1, 3600)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return seconds


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tokenway top", description="Replicas, load, queues and tenants of a router, live."
    )
    parser.add_argument("--at", default=DEFAULT_AT, help=f"host:port of the router ({DEFAULT_AT})")
    parser.add_argument("--interval", type=_interval, default=1.0, metavar="S", help="seconds (1)")
    parser.add_argument("--once", action="store_true", help="show one moment and end")
    parser.add_argument("--json", action="store_true", help="one moment, for programs")
    add_certificates(parser)
    return parser
