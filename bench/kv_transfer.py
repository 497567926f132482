"""Blocks from one engine's pool into another's, over a memory copy and over a bare TCP socket.

Two processes on one machine. The channel is what engines use, in the clear and with mutual TLS:
each block is read from a pool, sent, checked, and written into another. The socket sends the same
bytes and nothing is done with them; the copy takes them from one pool to another. The other tiers
give the same blocks to the same pool. All take turns, and of each the best round counts:
neighbours on the machine only slow a side down.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, aclosing
from pathlib import Path

from bench.kv_lender import LAYOUT, address, memory_of
from bench.kv_tiers import tiers
from bench.ratio import Ratio
from bench.service_process import service_process
from services.engine.freed_memory import keep_freed_memory
from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.figures import TierFigures
from services.engine.kv.memory import BlockMemory
from services.engine.kv.peer_supply import PeerSupply
from services.engine.kv.supply import Supply, Wanted
from services.engine.kv.switch import CacheSwitch
from services.shared.stream.events import CacheMiss
from services.shared.tls.identity import Role, server_name
from services.shared.tls.way import CLEAR
from tests.mesh_bed import Certified

BLOCKS = 128
ROUNDS = 5
GB = 1e9

Way = Callable[[], Awaitable[None]]


def copied(memory: BlockMemory, blocks: int) -> Way:
    """From one pool to another in one process."""
    source, room = memory_of(blocks), memoryview(bytearray(memory.block_bytes))

    async def copy() -> None:
        for block in range(blocks):
            source.read_into(block, room)
            memory.write(block, room)

    return copy


def sent_raw(door: str, block_bytes: int, blocks: int) -> Way:
    """Over a socket, both ends of which block."""
    host, _, port = door.rpartition(":")
    room = bytearray(block_bytes)

    def receive() -> None:
        with socket.create_connection((host, int(port))) as connection:
            left = blocks * block_bytes
            while left:
                left -= connection.recv_into(room, min(left, block_bytes))

    async def send() -> None:
        await asyncio.to_thread(receive)

    return send


def supplied(supply: Supply, memory: BlockMemory, blocks: int, peer: str | None = None) -> Way:
    """As an engine has blocks come."""
    wanted = Wanted(addresses=[address(at) for at in range(blocks)], peer=peer)

    async def come() -> None:
        came = 0
        async with aclosing(supply.supply(wanted)) as given:
            async for each in given:
                if isinstance(each, CacheMiss):
                    raise RuntimeError(f"after {came} blocks: {each.name}")  # noqa: TRY004
                for block in each:
                    await asyncio.to_thread(memory.write, came, block)
                    came += 1

    return come


async def best_of(ways: dict[str, Way], rounds: int) -> dict[str, float]:
    """Seconds of each, which take turns; the first round only warms them."""
    best = dict.fromkeys(ways, float("inf"))
    for at in range(rounds + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            await way()
            if at:
                best[name] = min(best[name], time.perf_counter() - began)
    return best


def peers(folder: Path, block_bytes: int) -> tuple[dict[str, PeerSupply], Path]:
    """Who fetches, by door, and the folder of who lends."""
    certified = Certified(folder)
    mtls = certified.way(Role.ENGINE, server_name(Role.ENGINE))
    supplies = {
        door: PeerSupply(
            LAYOUT,
            block_bytes,
            CacheSwitch(),
            TierFigures(),
            PeerSettings(patience_s=60),
            way=way,
        )
        for door, way in (("plain", CLEAR), ("mtls", mtls))
    }
    return supplies, certified.folder(Role.ENGINE, "lender")


async def measure(folder: Path, blocks: int, rounds: int) -> dict[str, float]:
    """GB/s of each way."""
    memory = memory_of(blocks)
    supplies, certificates = peers(folder, memory.block_bytes)
    async with AsyncExitStack() as stack:
        lender = {"blocks": blocks, "certificates": str(certificates)}
        doors = stack.enter_context(service_process("bench.kv_lender", lender)).doors
        ways = {
            "memcpy": copied(memory, blocks),
            "tcp": sent_raw(doors["raw"], memory.block_bytes, blocks),
        }
        for door, supply in supplies.items():
            stack.push_async_callback(supply.close)
            ways[door] = supplied(supply, memory, blocks, doors[door])
        for name, tier in tiers(memory, blocks, folder, stack).items():
            ways[name] = supplied(tier, memory, blocks)
        best = await best_of(ways, rounds)
    size = blocks * memory.block_bytes
    return {name: size / seconds / GB for name, seconds in best.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--blocks", type=int, default=BLOCKS)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    keep_freed_memory()
    with tempfile.TemporaryDirectory() as folder:
        rates = asyncio.run(measure(Path(folder), options.blocks, options.rounds))
    print("way         GB/s  of memcpy  of tcp")
    for name, rate in rates.items():
        print(f"{name:9} {rate:6.2f} {rate / rates['memcpy']:10.2f} {rate / rates['tcp']:7.2f}")
    for name in ("mtls", "plain"):
        print(Ratio(name=f"kv_{name}_to_memcpy", value=rates[name] / rates["memcpy"]))
        print(Ratio(name=f"kv_{name}_to_tcp", value=rates[name] / rates["tcp"]))


if __name__ == "__main__":
    main()
