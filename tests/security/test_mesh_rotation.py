"""Certificates and their authority are exchanged under running streams, which do not notice."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import httpx
import pytest
from cryptography import x509
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.launcher.certs.authority import Authority
from services.shared.model_folder import ModelFolder
from services.shared.tls.certificate_files import CERTIFICATE, KEY
from services.shared.tls.dial import Dial, dialling
from services.shared.tls.identity import STREAM_NAME, Role
from services.shared.tls.own_certificate import own_certificate
from tests.integration.stack import Launcher, Service, Stack, simulated, stack_of
from tests.mesh_bed import Certified
from tests.waiting import PATIENCE_S, until

STREAMS = 32
TOKENS = 25
STEP_US = 40_000
POLL_S = 0.1
"""Looking costs the machine what the streams need."""

NAMES = {"engine0": Role.ENGINE, "engine1": Role.ENGINE, "router": Role.ROUTER, "codec": Role.CODEC}


class Clients:
    """Each asks for its own output again and again, and compares what comes with the first."""

    def __init__(self, stack: Stack) -> None:
        self._stack = stack
        self._first: dict[int, str] = {}
        self.rounds = dict.fromkeys(range(STREAMS), 0)
        self.wrong: list[str] = []

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Inside the block all of them; in the end what runs comes to its end."""
        over = asyncio.Event()
        limits = httpx.Limits(max_connections=STREAMS)
        async with (
            httpx.AsyncClient(timeout=PATIENCE_S, limits=limits) as http,
            asyncio.TaskGroup() as group,
        ):
            for number in self.rounds:
                group.create_task(self._ask(http, number, over))
            try:
                yield
            finally:
                over.set()

    async def all_once_more(self) -> None:
        """Returns when each has begun and ended an output from now on."""
        wanted = {number: rounds + 2 for number, rounds in self.rounds.items()}
        await until(lambda: all(self.rounds[each] >= wanted[each] for each in wanted))

    async def _ask(self, http: httpx.AsyncClient, number: int, over: asyncio.Event) -> None:
        while not over.is_set():
            text = await self._text(http, number)
            if text != self._first.setdefault(number, text):
                self.wrong.append(text)
            self.rounds[number] += 1

    async def _text(self, http: httpx.AsyncClient, number: int) -> str:
        body = self._stack.chat(f"n{number}", seed=number, max_tokens=TOKENS, stream=True)
        pieces: list[str] = []
        url = f"{self._stack.url}/v1/chat/completions"
        async with http.stream("POST", url, json=body) as answer:
            async for line in answer.aiter_lines():
                data = line.removeprefix("data: ")
                if not line or data == "[DONE]":
                    continue
                chunk = json.loads(data)
                if "choices" not in chunk:
                    return f"{number}: {data}"
                pieces += [choice["delta"].get("content") or "" for choice in chunk["choices"]]
        return "".join(pieces)


def serial_of(address: str, folder: Path) -> int:
    """Of the certificate that a door shows now to one who shows that in `folder`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    with (
        socket.create_connection(_host_port(address), timeout=PATIENCE_S) as plain,
        context.wrap_socket(plain) as secured,
    ):
        der = secured.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der).serial_number


def _host_port(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def moves(service: Service) -> int:
    """Sessions that went on to another connection."""
    return service.log.read_text().count('"new connection to')


async def exchanged(stack: Stack, certified: Certified) -> None:
    """Issues all certificates again; returns when all show and use them."""
    services = dict(zip(NAMES, stack.services, strict=True))
    before = {name: moves(services[name]) for name in ("router", "codec")}
    admin = certified.folder(Role.ADMIN)
    for name, role in NAMES.items():
        folder, service = certified.folder(role, name), services[name]
        wanted = own_certificate(folder, role).serial_number
        while await asyncio.to_thread(serial_of, service.grpc, admin) != wanted:  # noqa: ASYNC110  # it watches what has no event to wait for
            await asyncio.sleep(POLL_S)
    for name, sessions in (("router", 2), ("codec", 1)):
        while moves(services[name]) < before[name] + sessions:  # noqa: ASYNC110  # as above
            await asyncio.sleep(POLL_S)


async def is_heard(dial: Dial, address: str) -> bool:
    async with dial(address) as channel:
        try:
            await health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(), timeout=PATIENCE_S
            )
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                return False
            raise
    return True


@pytest.mark.timeout(300)
async def test_an_authority_is_exchanged_under_streams_that_lose_no_token(
    model_folder: ModelFolder, tmp_path: Path
) -> None:
    old = Authority.new()
    certified = Certified(tmp_path / "certificates", old)
    revoked = certified.files(Role.ADMIN)
    launcher = Launcher(folder=tmp_path, environ={}, certified=certified)
    engine = simulated(model_folder, simulation={"step_us": STEP_US, "token_us": 5})
    with stack_of(launcher, [engine] * 2, model_folder) as stack:
        clients = Clients(stack)
        doors = [service.grpc for service in (*stack.engines, stack.router)]
        async with clients.asking():
            await until(lambda: all(clients.rounds.values()))
            new = Authority.new(beside=old.trusted)
            for authority in (
                Authority(old.certificate, old.key, new.trusted),
                new,
                Authority(new.certificate, new.key, (new.certificate,)),
            ):
                certified.authority = authority
                await exchanged(stack, certified)
            await clients.all_once_more()
            shown = replace(revoked, ca=certified.files(Role.ADMIN).ca)
            for door in doors:
                assert await is_heard(certified.dial(Role.ADMIN, STREAM_NAME), door)
                assert not await is_heard(dialling(lambda: shown, STREAM_NAME), door)
        assert clients.wrong == []
        failed = [line for line in stack.router.lines() if line.get("end", "").startswith("failed")]
        assert failed == []
