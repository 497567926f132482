"""`tokenway connect`: what a client must be told to speak with the running codec."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence

from services.launcher.chat import ChatFailed, CodecDoor, add_door, first_model
from services.launcher.client_settings import CLIENTS, NO_KEY, ClientSettings, Door


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="tokenway connect", description=__doc__, epilog=f"clients: {', '.join(CLIENTS)}"
    )
    parser.add_argument("name", choices=CLIENTS, metavar="NAME", help="of the client")
    add_door(parser)
    parser.add_argument("--model", help="name of the model (the first that the codec has)")
    arguments = parser.parse_args(argv)
    door = CodecDoor.of(arguments)
    try:
        model = arguments.model or first_model(door)
    except ChatFailed as error:
        sys.stderr.write(f"tokenway connect: {error}, or name a model by --model\n")
        return 1
    settings = CLIENTS[arguments.name](Door(door.url, model, door.key or NO_KEY))
    sys.stdout.write("\n\n".join(_parts(settings)) + "\n")
    return 0


def _parts(settings: ClientSettings) -> Iterator[str]:
    for path, text in settings.files.items():
        yield f"# ~/{path}\n{text.rstrip()}"
    if settings.environ:
        pairs = settings.environ.items()
        yield "\n".join(f"export {name}={shlex.quote(value)}" for name, value in pairs)
    yield settings.use
