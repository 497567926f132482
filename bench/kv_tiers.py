"""Tiers that hold the same blocks, for measuring how fast they give them."""

from __future__ import annotations

import shutil
import socket
import time
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path

from bench.kv_lender import LAYOUT, address
from bench.kv_reuse import redis
from services.engine.kv.cache_settings import (
    CacheSettings,
    CacheType,
    DistributedSettings,
    EmbeddedSettings,
    Spread,
)
from services.engine.kv.figures import TierFigures
from services.engine.kv.host_tier import HostTier
from services.engine.kv.memory import BlockMemory
from services.engine.kv.record import HEADER_BYTES
from services.engine.kv.records import Records
from services.engine.kv.service_cache import ServiceCache
from services.engine.kv.stores.opening import open_store
from services.engine.kv.supply import Supply, Wanted
from services.engine.kv.switch import CacheSwitch

PATIENT_S = 60.0
NODES = 6
"""Of which two may be lost: four fragments and two more for each block."""


def host_tier(memory: BlockMemory, blocks: int, stack: AsyncExitStack) -> HostTier:
    host = HostTier(memory, blocks * memory.block_bytes, TierFigures())
    stack.callback(host.close)
    for at in range(blocks):
        while not host.can_supply(Wanted(addresses=[address(at)])):
            host.keep(at, address(at))
            time.sleep(0.001)  # it makes its room beside
    return host


def service_cache(
    settings: CacheSettings, memory: BlockMemory, blocks: int, stack: AsyncExitStack
) -> ServiceCache:
    store = open_store(settings, LAYOUT, memory.block_bytes)
    if store is None:
        raise RuntimeError("the settings name no store")
    stack.callback(store.close)
    records = Records(store, LAYOUT)
    room = memoryview(bytearray(HEADER_BYTES + memory.block_bytes))
    for at in range(blocks):
        memory.read_into(at, room[HEADER_BYTES:])
        records.write(address(at), room)
    cache = ServiceCache(records, CacheSwitch(), TierFigures(), settings)
    stack.push_async_callback(cache.close)
    return cache


def node(stack: AsyncExitStack) -> str:
    """The address of a server that listens."""
    started = stack.enter_context(redis())
    host, _, port = started.rpartition(":")
    while True:
        with suppress(ConnectionRefusedError), socket.create_connection((host, int(port))):
            return started
        time.sleep(0.01)


def tiers(
    memory: BlockMemory, blocks: int, folder: Path, stack: AsyncExitStack
) -> dict[str, Supply]:
    """Host memory, a file of the machine, and Redis where it is installed."""
    file = EmbeddedSettings(path=folder / "kv")
    settings = {"embedded": CacheSettings(type=CacheType.EMBEDDED, embedded=file)}
    if shutil.which("redis-server"):
        one = DistributedSettings(nodes=(node(stack),))
        six = DistributedSettings(
            nodes=tuple(node(stack) for _ in range(NODES)), spread=Spread.ERASURE
        )
        for name, store in (("redis", one), ("redis 4+2", six)):
            slow = replace(store, timeout_s=PATIENT_S)
            settings[name] = CacheSettings(type=CacheType.DISTRIBUTED, distributed=slow)
    found: dict[str, Supply] = {"host": host_tier(memory, blocks, stack)}
    for name, each in settings.items():
        patient = replace(each, read_timeout_s=PATIENT_S)
        found[name] = service_cache(patient, memory, blocks, stack)
    return found
