"""Runs a router: connects to its replicas, serves, drains."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from services.router.app import routing
from services.router.settings import RouterSettings
from services.shared.announce import announce
from services.shared.drain import drained
from services.shared.program import Program
from services.shared.stop import Stop


def main(argv: Sequence[str] | None = None) -> int:
    program = Program(name="router", settings=RouterSettings, aliases={}, serve=serve)
    return program.run(sys.argv[1:] if argv is None else argv)


async def serve(settings: RouterSettings, stop: Stop) -> None:
    """Serves until it is asked to stop, then drains."""
    async with routing(settings) as router:
        announce({"grpc": router.address, **router.metrics})
        await drained(router.relay, router.health, stop, settings.service.limits)


if __name__ == "__main__":
    sys.exit(main())
