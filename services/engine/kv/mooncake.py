"""Mooncake's TransferEngine as a transport: peer to peer, no metadata server, no store."""

from __future__ import annotations

import ctypes
import logging
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from services.engine.kv.cache_settings import PeerSettings, Transport
from services.engine.kv.staging import Staging
from services.shared.config import BadConfig

LEAST_VERSION = (0, 3, 13)
"""Those before let anybody read and write all memory of the process."""

PACKAGES = (
    "mooncake-transfer-engine-non-cuda",
    "mooncake-transfer-engine",
    "mooncake-transfer-engine-cuda13",
)

_log = logging.getLogger(__name__)


class Mooncake:
    """One engine of the process. It listens on all interfaces and asks nobody who they are.

    Args:
        host: under which others reach it.
        protocol: `tcp` or `rdma`.

    Raises:
        BadConfig: it is not installed, too old, or does not start.
    """

    def __init__(self, host: str, protocol: str) -> None:
        _check_version()
        try:
            from mooncake.engine import TransferEngine  # noqa: PLC0415  # an extra, never needed
        except ImportError as error:
            raise BadConfig(f"cache.peer.transport mooncake cannot be loaded: {error}") from error
        self._engine: Any = TransferEngine()
        status = self._engine.initialize(host, "P2PHANDSHAKE", protocol, "")
        if status:
            raise BadConfig(f"cache.peer.transport mooncake does not start at {host}: {status}")
        self.session = f"{host}:{self._engine.get_rpc_port()}"
        _log.info("memory is lent over mooncake", extra={"fields": {"session": self.session}})

    def register(self, memory: memoryview) -> int:
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        status = self._engine.register_memory(address, memory.nbytes)
        if status:
            raise BadConfig(f"cache.peer.transport mooncake cannot register memory: {status}")
        return address

    def read(self, session: str, offset: int, into: int, size: int) -> bool:
        return not self._engine.transfer_sync_read(session, into, offset, size)


def staging_of(rules: PeerSettings, block_bytes: int) -> Staging | None:
    """Memory that other engines may read; None where the settings want none.

    Raises:
        BadConfig: it cannot be had.
    """
    if rules.transport is not Transport.MOONCAKE:
        return None
    wanted = rules.mooncake
    if wanted.staging_bytes < block_bytes:
        raise BadConfig(
            f"cache.peer.mooncake.staging_bytes must be >= {block_bytes}, a block's bytes, "
            f"got {wanted.staging_bytes}"
        )
    return Staging(Mooncake(wanted.host, wanted.protocol), block_bytes, wanted.staging_bytes)


def _check_version() -> None:
    for package in PACKAGES:
        try:
            text = version(package)
        except PackageNotFoundError:
            continue
        found = tuple(int(part) for part in text.split(".")[:3] if part.isdigit())
        if found < LEAST_VERSION:
            least = ".".join(map(str, LEAST_VERSION))
            raise BadConfig(f"{package} must be >= {least} for cache.peer.transport, got {text}")
        return
    raise BadConfig("cache.peer.transport mooncake needs the extra: pip install tokenway[rdma]")
