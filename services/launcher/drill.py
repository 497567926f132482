"""`tokenway drill`: breaks something on purpose and tells what clients saw of it."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event

import grpc
from tokenway.router.v1 import router_pb2 as pb
from tokenway.router.v1 import router_pb2_grpc as rpc

from services.launcher.chat import ChatFailed, CodecDoor, add_ca, codec_url, first_model
from services.launcher.dev_key import own_key
from services.launcher.drill_client import DrillClient
from services.launcher.drill_fault import FAULTS, CannotDrill
from services.launcher.drill_report import Report
from services.launcher.drill_stack import DrillStack, stack_of
from services.launcher.drilled import Drilled
from services.launcher.own_certificates import Calling, add_certificates, own_certificates
from services.launcher.run_file import NotRunning
from services.launcher.up_options import DEFAULT_KEYS, DEFAULT_LOGS
from services.shared.tls.certificate_files import BadCertificates
from services.shared.tls.identity import Role, server_name

AROUND_S = 1.0
"""How long clients stream before the fault, and after it."""

TIMEOUT_S = 10.0

_WORDS = (
    "kill: SIGKILL to the engine",
    "stall: SIGSTOP, later SIGCONT",
    "drain: the router takes it out, later in again",
    "partition: the router has no connection to it for a while",
)


def main(argv: Sequence[str]) -> int:
    """0: no client saw a wrong token; 1: one did, or the replica is not back; 2: not drilled."""
    options = _options(argv)
    try:
        report = asyncio.run(_drill(options))
    except (BadCertificates, CannotDrill, NotRunning, ChatFailed) as error:
        sys.stderr.write(f"tokenway drill: {error}\n")
        return 2
    except grpc.aio.AioRpcError as error:
        sys.stderr.write(f"tokenway drill: the router does not do it: {error.details()}\n")
        return 2
    sys.stdout.write("\n".join(report.lines()) + "\n")
    return report.status


async def _drill(options: argparse.Namespace) -> Report:
    stack = _stack(options)
    certificates = own_certificates(options.certificates, stack.router, os.environ, options.key_dir)
    calling = Calling(certificates, server_name(Role.ROUTER))
    async with calling.dial(stack.router) as channel:
        router = rpc.RouterServiceStub(channel)
        listed = await router.ListReplicas(pb.ListReplicasRequest(), timeout=TIMEOUT_S)
        target = stack.target([one.address for one in listed.replicas], options.engine)
        drilled = Drilled(
            router=router, target=target, fault=options.fault, seconds=options.seconds
        )
        door = CodecDoor(stack.url, own_key(stack.url, os.environ, options.key_dir), options.ca)
        client = DrillClient(door=door, model=first_model(door), number=0, tokens=options.tokens)
        clients = [replace(client, number=number) for number in range(options.clients)]
        with ThreadPoolExecutor(len(clients)) as threads:
            return await _seen(drilled, clients, threads)


async def _seen(
    drilled: Drilled, clients: Sequence[DrillClient], threads: ThreadPoolExecutor
) -> Report:
    """All clients stream before, while and after the replica has the fault."""
    loop = asyncio.get_running_loop()
    undisturbed = await asyncio.gather(
        *(loop.run_in_executor(threads, client.ask) for client in clients)
    )
    if failures := {seen.failure for seen in undisturbed if seen.failure is not None}:
        raise CannotDrill(f"answers fail already: {'; '.join(sorted(failures))}")
    over = Event()
    asking = [loop.run_in_executor(threads, client.ask_until, over) for client in clients]
    try:
        await asyncio.sleep(AROUND_S)
        back_s = await drilled.back_after()
        await asyncio.sleep(AROUND_S)
    finally:
        over.set()
    return Report(
        fault=f"{drilled.fault} of {drilled.target.name} ({drilled.target.address})",
        undisturbed=undisturbed,
        disturbed=await asyncio.gather(*asking),
        back_s=back_s,
    )


def _stack(options: argparse.Namespace) -> DrillStack:
    """Raises NotRunning."""
    if options.url is None:
        return stack_of(options.log_dir)
    return DrillStack(url=options.url, router=options.router)


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tokenway drill", description=__doc__)
    parser.add_argument("fault", choices=FAULTS, help="; ".join(_WORDS))
    parser.add_argument("--engine", type=_bounded(0, 1000), default=0, help="its number (0)")
    parser.add_argument(
        "--seconds", type=_bounded(0, 600), default=10, help="how long the fault lasts (10)"
    )
    parser.add_argument("--clients", type=_bounded(1, 64), default=8, help="that stream (8)")
    parser.add_argument(
        "--tokens", type=_bounded(1, 100_000), default=64, help="of each answer (64)"
    )
    parser.add_argument(
        "--log-dir", type=Path, default=DEFAULT_LOGS, help=f"of `tokenway up` ({DEFAULT_LOGS})"
    )
    parser.add_argument(
        "--key-dir", type=Path, default=DEFAULT_KEYS, help=f"of `tokenway up` ({DEFAULT_KEYS})"
    )
    parser.add_argument("--url", type=codec_url, help="of another stack's codec; needs --router")
    parser.add_argument("--router", help="host:port of its router")
    add_ca(parser)
    add_certificates(parser)
    options = parser.parse_args(argv)
    if (options.url is None) is not (options.router is None):
        parser.error("--url and --router go together")
    return options


def _bounded(low: int, high: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"must be between {low} and {high}, got {text}")
        return int(text)

    return number
