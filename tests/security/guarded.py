"""A codec that takes one key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx

from services.launcher.keys_command import create_key
from services.shared.access.settings import SecuritySettings
from services.shared.channel import open_channel
from tests.codec_bed import MODEL, Bed, BedMaker
from tests.waiting import PATIENCE_S

TENANT = "acme"
BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 5,
    "messages": [{"role": "user", "content": "hi"}],
    # Each protocol ignores what belongs to another.
    "input": "hi",
    "prompt": "hi",
}


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """The codec, its file of keys, the key of `TENANT`, and a client that shows none."""

    bed: Bed
    keys_file: Path
    key: str
    client: httpx.AsyncClient


@asynccontextmanager
async def guarded_by(beds: BedMaker, keys_file: Path, **security: Any) -> AsyncIterator[Guarded]:
    """Args: security: further settings."""
    key = create_key(keys_file, TENANT, "test").text
    settings = SecuritySettings(keys_file=keys_file, **security)
    async with (
        beds.bed(beds.engine(beds.says("fine")), security=settings) as bed,
        httpx.AsyncClient(base_url=bed.url, timeout=PATIENCE_S) as client,
    ):
        yield Guarded(bed=bed, keys_file=keys_file, key=key, client=client)


async def code_of(bed: Bed, path: str, metadata: tuple[tuple[str, str], ...]) -> grpc.StatusCode:
    """How a call of a method ends.

    The message goes out in one batch with the call's beginning: a client that writes it later may
    find the call over, and then takes its own failed write for the end.
    """
    async with open_channel(bed.service.grpc) as channel:
        call: Any = channel.stream_stream(path, None, None)(
            iter([b""]), metadata=metadata, timeout=PATIENCE_S
        )
        try:
            async for _ in call:
                pass
        except grpc.aio.AioRpcError as error:
            return error.code()
        return grpc.StatusCode.OK
