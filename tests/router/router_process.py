"""A router as a process of its own, for tests that end it."""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from services.shared.announce import announced
from tests.waiting import PATIENCE_S

ROOT = Path(__file__).parents[2]
HEAVY = ("torch", "numpy", "numba", "tokenizers", "jinja2", "safetensors")
WITHOUT_HEAVY = (
    f"import sys; sys.modules.update(dict.fromkeys({HEAVY!r})); "
    "from services.router.__main__ import main; sys.exit(main(sys.argv[1:]))"
)


@asynccontextmanager
async def router_process(*arguments: str) -> AsyncIterator[Process]:
    """A router in an interpreter that cannot import what only engines and codecs need."""
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", WITHOUT_HEAVY, *arguments, stdout=PIPE, stderr=PIPE, env=environ
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def config(
    folder: Path, addresses: list[str], *, settle_s: float = 0, drain_timeout_s: float = 30
) -> str:
    path = folder / "router.yaml"
    more = f"service: {{limits: {{settle_s: {settle_s}, drain_timeout_s: {drain_timeout_s}}}}}"
    replicas = ", ".join(f'"{address}"' for address in addresses)
    clear = "security: {mtls: false}"
    path.write_text(f"server: {{port: 0}}\nreplicas: [{replicas}]\n{clear}\n{more}", "utf-8")
    return str(path)


async def address_of(process: Process) -> str:
    assert process.stdout is not None
    line = await asyncio.wait_for(process.stdout.readline(), PATIENCE_S)
    doors = announced(line.decode())
    assert doors is not None
    return doors["grpc"]
