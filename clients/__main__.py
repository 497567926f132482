"""Installs the clients, runs each against the services, and prints a table.

usage: python -m clients [--kill] [NAME ...]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from clients.backends import Backends
from clients.client import Backend, Client
from clients.continuation import continuation
from clients.installation import CACHE, ROOT, NotInstalled
from clients.run import Run, Verdict
from clients.table import CLIENTS
from services.shared.model_folder import ModelFolder

MODEL = ROOT / ".cache" / "models" / "smollm2-135m-instruct"
HEADS = ("client", "version", "protocol", "answered by", "prompt", "answer", "tool round trip")
INTERRUPTED = ("claude-code", "codex", "opencode")

Row = tuple[str, ...]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m clients", description=__doc__)
    names = [client.name for client in CLIENTS]
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names))
    parser.add_argument("--model", type=Path, default=MODEL, help="folder of the small model")
    parser.add_argument(
        "--kill",
        action="store_true",
        help="the engine is killed in the middle of the answer, which must not show it; "
        f"without a name: {', '.join(INTERRUPTED)}",
    )
    options = parser.parse_args()
    if unknown := sorted({*options.names} - {*names}):
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(names)}")
    chosen = [client for client in CLIENTS if not options.names or client.name in options.names]
    return _interrupted(chosen, options) if options.kill else _answered(chosen, options)


def _interrupted(chosen: Sequence[Client], options: argparse.Namespace) -> int:
    faults = []
    for client in chosen:
        if not options.names and client.name not in INTERRUPTED:
            continue
        _say(f"-- {client.name} {client.version}, its engine killed in the middle of the answer")
        verdict = _continued(client, ModelFolder(options.model))
        _say(f"   {verdict}")
        if verdict.fault is not None:
            faults.append(f"{client.name}: {verdict.fault}")
    _say("\n".join(faults) or "all passed")
    return 1 if faults else 0


def _continued(client: Client, model: ModelFolder) -> Verdict:
    try:
        client.source.install()
    except NotInstalled as error:
        return Verdict(f"not installed: {error}")
    return continuation(client, model, CACHE / "stacks" / "interrupted")


def _answered(chosen: Sequence[Client], options: argparse.Namespace) -> int:
    rows: list[Row] = []
    faults: list[str] = []
    with Backends(ModelFolder(options.model), CACHE / "stacks") as backends:
        for client in chosen:
            _say(f"-- {client.name} {client.version}")
            verdicts = _verdicts(client, backends)
            rows.append(_row(client, verdicts))
            faults += [
                f"{client.name}, {kind}: {verdict.fault}"
                for kind, verdict in verdicts.items()
                if verdict.fault is not None
            ]
            _say(f"   {', '.join(map(str, verdicts.values()))}")
    _say(_table((HEADS, *rows)))
    _say("\n".join(faults) or "all passed")
    return 1 if faults else 0


def _verdicts(client: Client, backends: Backends) -> dict[str, Verdict]:
    """By what was asked: `answer`, and `tools` where the client has any."""
    try:
        client.source.install()
    except NotInstalled as error:
        return {"answer": Verdict(f"not installed: {error}")}
    stack = backends.stack(client.backend)
    verdicts = {"answer": Run(client=client, stack=stack, call=None).verdict()}
    if client.call is not None:
        stack = backends.stack(Backend.SCRIPTED)
        verdicts["tools"] = Run(client=client, stack=stack, call=client.call).verdict()
    return verdicts


def _row(client: Client, verdicts: dict[str, Verdict]) -> Row:
    tools = str(verdicts["tools"]) if "tools" in verdicts else "has none"
    answer = verdicts["answer"]
    prompt = f"{answer.prompt_tokens} tokens"
    told = (client.protocol, client.backend, prompt, str(answer), tools)
    return (client.name, client.version, *told)


def _table(rows: Sequence[Row]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
