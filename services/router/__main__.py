"""Runs a router: connects to its replicas, serves, drains."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from services.router.app import routing
from services.router.settings import RouterSettings
from services.shared.announce import announce
from services.shared.program import Program


def main(argv: Sequence[str] | None = None) -> int:
    program = Program(name="router", settings=RouterSettings, aliases={}, serve=serve)
    return program.run(sys.argv[1:] if argv is None else argv)


async def serve(settings: RouterSettings, stop: asyncio.Event) -> None:
    """Serves until `stop`, then finishes what runs, within the drain timeout."""
    async with routing(settings) as router:
        announce({"grpc": router.address})
        await stop.wait()
        await router.relay.drain(settings.service.limits.drain_timeout_s)


if __name__ == "__main__":
    sys.exit(main())
