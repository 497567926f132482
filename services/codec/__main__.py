"""The codec as a program: `python -m services.codec --config codec.yaml`."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from services.codec.output.families import FAMILIES
from services.codec.prompt import PromptEncoder
from services.codec.service import serving_codec
from services.codec.settings import ALIASES, CodecSettings
from services.shared.announce import announce
from services.shared.drain import drained
from services.shared.model_folder import ModelFolder
from services.shared.program import Program
from services.shared.stop import Stop

SWITCH_INTERVAL_S = 0.001
"""How long a worker thread may keep the event loop from the interpreter, five times less than by
default: each stream waits that long while a prompt is parsed or its IDs are put together."""


def main(argv: Sequence[str] | None = None) -> int:
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    program = Program(name="codec", settings=CodecSettings, aliases=ALIASES, serve=serve)
    return program.run(sys.argv[1:] if argv is None else argv)


async def serve(settings: CodecSettings, stop: Stop) -> None:
    """Serves until it is asked to stop, then drains."""
    folder = ModelFolder(settings.executor.model_path)
    name = settings.service.output_family
    encoder = PromptEncoder(
        folder,
        cache_bytes=settings.service.piece_cache,
        family=None if name is None else FAMILIES[name],
    )
    async with serving_codec(settings, folder, encoder) as service:
        announce({"http": service.http, "grpc": service.grpc, **service.metrics})
        await drained(service, service.health, stop, settings.service.limits)


if __name__ == "__main__":
    sys.exit(main())
