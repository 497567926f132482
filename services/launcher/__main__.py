"""The command line: `tokenway COMMAND ...`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = {
    "up": ("services.launcher.up", "start all services on this machine"),
    "chat": ("services.launcher.chat", "ask the model and stream the answer"),
    "connect": ("services.launcher.connect", "show what a client must be told"),
    "model": ("services.launcher.model", "make a model folder (model import)"),
    "probe": ("services.launcher.health_probe", "ask a service whether it can serve"),
    "drill": ("services.launcher.drill", "break something on purpose and tell what clients saw"),
    "engine": ("services.engine.__main__", "run one engine"),
    "router": ("services.launcher.router_command", "run one router, or operate one (router list)"),
    "trace": ("services.launcher.trace_command", "draw where the time of a request went"),
    "top": ("services.launcher.top", "replicas, load, queues and tenants of a router, live"),
    "cache": ("services.launcher.cache_command", "switch, flush and watch the caches of engines"),
    "keys": ("services.launcher.keys_command", "make API keys, list them, take them back"),
    "certs": ("services.launcher.certs_command", "make certificates for services, renew them"),
    "usage": ("services.launcher.usage_command", "what tenants used, and what it costs"),
    "codec": ("services.codec.__main__", "run one codec"),
}
"""Each command's module, imported only for it: a router's machine has no torch."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command and gives its exit status."""
    lines = [f"  {name:8}{words}" for name, (_, words) in COMMANDS.items()]
    parser = argparse.ArgumentParser(
        prog="tokenway",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(["commands (each has --help):", *lines]),
    )
    parser.add_argument("command", choices=COMMANDS, metavar="COMMAND")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="...")
    parsed = parser.parse_args(argv)
    # Read when grpc is imported, below: its C core writes lines of its own between our JSON, also
    # one for every stranger who is turned away.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    module, _ = COMMANDS[parsed.command]
    status: int = import_module(module).main(parsed.arguments)
    return status


if __name__ == "__main__":
    sys.exit(main())
