"""`tokenway router`: runs a router, or asks one that runs about its replicas and operates them."""

from __future__ import annotations

import argparse
import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

from google.protobuf.message import Message
from rich.console import RenderableType
from tokenway.router.v1 import router_pb2 as pb
from tokenway.router.v1 import router_pb2_grpc as rpc
from tokenway.stream.v1 import stream_pb2
from tokenway.types.v1 import types_pb2

from services.launcher.operator_call import DEFAULT_AT, TIMEOUT_S, OperatorCall, json_of
from services.launcher.own_certificates import Calling, add_certificates, own_certificates
from services.launcher.replica_table import explanation_table, replica_table
from services.shared.tls.identity import Role, server_name

Stub = rpc.RouterServiceStub
Ask = Callable[[Stub, argparse.Namespace], Awaitable[Any]]


def main(argv: Sequence[str]) -> int:
    if argv[:1] and argv[0] in (*_ACTIONS, "-h", "--help"):
        return asyncio.run(operate(argv))
    from services.router.__main__ import main as run  # noqa: PLC0415  operating one needs no router

    return run(argv)


async def operate(argv: Sequence[str]) -> int:
    """An action, on an event loop."""
    arguments = _parser().parse_args(argv)
    ask, render = _ACTIONS[arguments.action]
    certificates = own_certificates(arguments.certificates, arguments.at, os.environ)
    call = OperatorCall(
        program="tokenway router",
        callee="router",
        calling=Calling(certificates, server_name(Role.ROUTER)),
        ask=lambda channel: ask(Stub(channel), arguments),
        render=render,
        json=json_of,
    )
    return await call.run(arguments.at, as_json=arguments.json)


async def _list(stub: Stub, _: argparse.Namespace) -> Message:
    return await stub.ListReplicas(pb.ListReplicasRequest(), timeout=TIMEOUT_S)


async def _drain(stub: Stub, arguments: argparse.Namespace) -> Message:
    request = pb.DrainReplicaRequest(address=arguments.address, undo=arguments.action == "undrain")
    return (await stub.DrainReplica(request, timeout=TIMEOUT_S)).replica


async def _weight(stub: Stub, arguments: argparse.Namespace) -> Message:
    request = pb.SetWeightRequest(address=arguments.address, weight=arguments.weight)
    return (await stub.SetWeight(request, timeout=TIMEOUT_S)).replica


async def _explain(stub: Stub, arguments: argparse.Namespace) -> Message:
    request = stream_pb2.GenerateRequest(
        model=arguments.model,
        prompt_ids=_prompt_ids(arguments),
        stopping=types_pb2.Stopping(max_tokens=arguments.max_tokens),
        quality_of_service=types_pb2.QualityOfService(tenant=arguments.tenant),
        routing=types_pb2.RoutingHints(session_key=arguments.session),
    )
    return await stub.Explain(pb.ExplainRequest(request=request), timeout=TIMEOUT_S)


def _prompt_ids(arguments: argparse.Namespace) -> list[int]:
    path: Path | None = arguments.prompt_file
    text = arguments.prompt_ids if path is None else path.read_text("utf-8")
    words = re.split(r"[\s,]+", text.strip(" \n,[]"))
    for word in words:
        if not word.isdecimal() or int(word) >= 2**32:
            raise ValueError(f"a prompt must be token IDs, 0 to {2**32 - 1}, got {word!r}")
    return [int(word) for word in words]


def _one(replica: pb.Replica) -> RenderableType:
    return replica_table([replica])


_ACTIONS: dict[str, tuple[Ask, Callable[[Any], RenderableType]]] = {
    "list": (_list, lambda answer: replica_table(answer.replicas, answer.waiting)),
    "drain": (_drain, _one),
    "undrain": (_drain, _one),
    "weight": (_weight, _one),
    "explain": (_explain, explanation_table),
}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tokenway router",
        description="Asks a router that runs, and operates it. Without an action a router is run: "
        "tokenway router --config FILE.",
    )
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--at", default=DEFAULT_AT, help=f"host:port of the router ({DEFAULT_AT})")
    common.add_argument("--json", action="store_true", help="for programs")
    add_certificates(common)
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    actions.add_parser("list", parents=[common], help="all replicas")
    for name, words in (
        ("drain", "give a replica nothing new and move its generations to others"),
        ("undrain", "give it generations again"),
        ("weight", "set its share of new generations"),
    ):
        action = actions.add_parser(name, parents=[common], help=words)
        action.add_argument("address", help="host:port of the replica")
        if name == "weight":
            action.add_argument("weight", type=float, help="0 to 1000; 0 takes nothing new")
    explain = actions.add_parser(
        "explain", parents=[common], help="where a prompt would go now, and why; nothing is sent"
    )
    prompt = explain.add_mutually_exclusive_group(required=True)
    prompt.add_argument("--prompt-ids", metavar="IDS", help="token IDs with commas between")
    prompt.add_argument("--prompt-file", type=Path, metavar="FILE", help="a file of token IDs")
    explain.add_argument("--max-tokens", type=int, metavar="N", help="of the output")
    explain.add_argument("--model", default="", help="of the generation (any)")
    explain.add_argument("--tenant", help="who asks")
    explain.add_argument("--session", metavar="KEY", help="session key")
    return parser
