"""What a router costs that opens one call for each request and sends one message for each token.

It forwards bytes without reading them, to one replica, so it does less than any router must.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc

from services.shared.announce import announce
from services.shared.channel import open_channel
from services.shared.server import serving

SERVICE = "tokenway.stream.v1.TokenStreamService"


async def proxy(replica: str) -> None:
    """Serves until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with open_channel(replica) as channel:
        untyped: Any = channel
        forward = untyped.unary_stream(f"/{SERVICE}/Generate")

        async def generate(request: bytes, _: Any) -> AsyncIterator[bytes]:
            async for response in forward(request):
                yield response

        method: grpc.RpcMethodHandler[Any, Any] = grpc.unary_stream_rpc_method_handler(generate)
        handler = grpc.method_handlers_generic_handler(SERVICE, {"Generate": method})

        def register(server: grpc.aio.Server) -> None:
            server.add_generic_rpc_handlers((handler,))

        async with serving("127.0.0.1:0", register, [SERVICE], grace_s=0) as door:
            announce({"grpc": door.address})
            await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    settings = json.loads(parser.parse_args().config.read_text("utf-8"))
    asyncio.run(proxy(settings["replica"]))


if __name__ == "__main__":
    main()
