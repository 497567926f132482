"""Whether a service can serve, asked from outside; also the health check of containers."""

from __future__ import annotations

import argparse
import asyncio
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.launcher.own_certificates import (
    SERVICE_VARIABLE,
    Calling,
    add_certificates,
    own_certificates,
)
from services.shared.health import LIVENESS
from services.shared.tls.certificate_files import BadCertificates, read_certificates
from services.shared.tls.dial import Dial, in_the_clear
from services.shared.tls.identity import STREAM_NAME, Role, server_name

POLL_S = 0.1
HTTP_TIMEOUT_S = 5.0


async def serving(address: str, service: str = "", dial: Dial = in_the_clear) -> None:
    """Returns once the gRPC health of `host:port` is SERVING, however often it must be asked."""
    async with dial(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        while True:
            try:
                asked = health_pb2.HealthCheckRequest(service=service)
                async for answer in stub.Watch(asked, wait_for_ready=True):
                    if answer.status == health_pb2.HealthCheckResponse.SERVING:
                        return
            except grpc.aio.AioRpcError:
                await asyncio.sleep(POLL_S)  # it went away; wait_for_ready finds it again


async def answering(url: str) -> None:
    """Returns once a GET of `url` is answered with 200."""
    while not await asyncio.to_thread(_is_ok, url):  # noqa: ASYNC110 HTTP has no event for it
        await asyncio.sleep(POLL_S)


def _is_ok(url: str) -> bool:
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=_anybody())
    )
    try:
        with opener.open(url, timeout=HTTP_TIMEOUT_S) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def _anybody() -> ssl.SSLContext:
    """Takes every certificate: it tells of a name that callers use, which is not this machine's.

    Nothing secret is sent, and a status is all that is believed.
    """
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def main(argv: Sequence[str]) -> int:
    """`tokenway probe ADDRESS`: 0 when it serves now, 1 when not."""
    return asyncio.run(probe(argv))


async def probe(argv: Sequence[str]) -> int:
    """The command, on an event loop."""
    parser = argparse.ArgumentParser(prog="tokenway probe", description=__doc__)
    parser.add_argument("address", help="host:port of a gRPC service, or an http(s) address")
    parser.add_argument("--live", action="store_true", help="ask a gRPC service only if it lives")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds to wait (5)")
    add_certificates(parser)
    arguments = parser.parse_args(argv)
    address: str = arguments.address
    try:
        await asyncio.wait_for(_asked(arguments), arguments.timeout)
    except TimeoutError:
        sys.stderr.write(f"{address} does not {'live' if arguments.live else 'serve'}\n")
        return 1
    except BadCertificates as error:
        sys.stderr.write(f"tokenway probe: {error}\n")
        return 1
    return 0


async def _asked(arguments: argparse.Namespace) -> None:
    address: str = arguments.address
    if address.startswith(("http://", "https://")):
        await answering(address)
        return
    # In a service's container its own certificate is at hand.
    said = arguments.certificates or os.environ.get(SERVICE_VARIABLE)
    certificates = own_certificates(said, address, os.environ)
    if certificates is None:
        names = [STREAM_NAME]
    else:
        read_certificates(certificates)  # what is wrong with them is told at once
        # Nobody says what the service is: one of the two names is right.
        names = [STREAM_NAME, server_name(Role.CODEC)]
    service = LIVENESS if arguments.live else ""
    async with asyncio.TaskGroup() as group:
        dials = [Calling(certificates, name).dial for name in names]
        asked = [group.create_task(serving(address, service, dial)) for dial in dials]
        await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
        for task in asked:
            task.cancel()
