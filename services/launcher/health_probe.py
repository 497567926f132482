"""Whether a service can serve, asked from outside; also the health check of containers."""

from __future__ import annotations

import argparse
import asyncio
import sys
import urllib.error
import urllib.request
from collections.abc import Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from services.shared.channel import open_channel
from services.shared.health import LIVENESS

POLL_S = 0.1
HTTP_TIMEOUT_S = 5.0


async def serving(address: str, service: str = "") -> None:
    """Returns once the gRPC health of `host:port` is SERVING, however often it must be asked."""
    async with open_channel(address) as channel:
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
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(url, timeout=HTTP_TIMEOUT_S) as response:
            return bool(response.status == 200)
    except (urllib.error.URLError, TimeoutError, ConnectionError):
        return False


def main(argv: Sequence[str]) -> int:
    """`tokenway probe ADDRESS`: 0 when it serves now, 1 when not."""
    parser = argparse.ArgumentParser(prog="tokenway probe", description=__doc__)
    parser.add_argument("address", help="host:port of a gRPC service, or a http:// address")
    parser.add_argument("--live", action="store_true", help="ask a gRPC service only if it lives")
    parser.add_argument("--timeout", type=float, default=5.0, help="seconds to wait (5)")
    arguments = parser.parse_args(argv)
    address: str = arguments.address
    service = LIVENESS if arguments.live else ""
    asked = answering(address) if address.startswith("http://") else serving(address, service)
    try:
        asyncio.run(asyncio.wait_for(asked, arguments.timeout))
    except TimeoutError:
        sys.stderr.write(f"{address} does not {'live' if arguments.live else 'serve'}\n")
        return 1
    return 0
