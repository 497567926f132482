"""An engine's blocks for others, and the same bytes over a bare TCP socket; no model runs."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import socket
import threading
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import torch
from tokenway.kv.v1.kv_pb2_grpc import add_KvServiceServicer_to_server

from services.engine.blocks import BlockPool
from services.engine.freed_memory import keep_freed_memory
from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.lending import Lending
from services.engine.kv.servicer import KvServicer
from services.engine.loop import EngineLoop
from services.engine.model.block_bytes import BlockBytes
from services.engine.model.config import ModelConfig
from services.engine.model.kv_pool import KvPool
from services.engine.scheduler import Limits, Scheduler
from services.engine.simulated import CostModel, SimulatedRunner
from services.engine.simulated_memory import SimulatedMemory
from services.engine.stopping import Stopper
from services.shared.announce import announce
from services.shared.server import serving
from services.shared.tls.certificate_files import read_certificates
from services.shared.tls.server_credentials import mutual

LAYOUT = "float32-30x3x64x16"
BLOCK_SIZE = 16

CONFIG = ModelConfig(
    vocabulary_size=49152,
    hidden_size=576,
    intermediate_size=1536,
    layers=30,
    heads=9,
    kv_heads=3,
    head_dim=64,
    context_length=8192,
    rms_eps=1e-5,
    rope_theta=100000.0,
    rope_scaling=None,
    tied_embeddings=True,
    eos_ids=(2,),
)
"""SmolLM2-135M: 737,280 bytes a block."""


def address(at: int) -> bytes:
    return at.to_bytes(16, "little")


def memory_of(blocks: int) -> BlockBytes:
    """A pool like a real model's, all of it written once."""
    pool = KvPool(CONFIG, blocks, BLOCK_SIZE, torch.zeros(0))
    pool.cache.uniform_(generator=torch.Generator().manual_seed(0))
    return BlockBytes(pool)


def idle_loop(blocks: int) -> EngineLoop:
    """A step loop whose whole pool is cached blocks."""
    pool = BlockPool(blocks, BLOCK_SIZE)
    taken = pool.allocate(blocks)
    for at, block in enumerate(taken):
        pool.publish(block, address(at))
    pool.release(taken)
    runner = SimulatedRunner(range(9), SimulatedMemory(1, BLOCK_SIZE), CostModel())
    limits = Limits(max_batch_size=1, token_budget=1)
    return EngineLoop(Scheduler(pool, limits), runner, Stopper(frozenset(), 1), lambda _: None)


def send_raw(listening: socket.socket, payload: memoryview, blocks: int) -> None:
    """To whoever connects, all blocks as they come."""
    while True:
        connection, _ = listening.accept()
        with connection:
            for _ in range(blocks):
                connection.sendall(payload)


async def serve(settings: dict[str, Any]) -> None:
    """Until SIGTERM."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    keep_freed_memory()
    blocks: int = settings["blocks"]
    memory, loop = memory_of(blocks), idle_loop(blocks)
    servicer = KvServicer(Lending(loop, memory, LAYOUT, PeerSettings()))

    def register(server: grpc.aio.Server) -> None:
        add_KvServiceServicer_to_server(servicer, server)

    listening = socket.create_server(("127.0.0.1", 0))
    raw = threading.Thread(target=send_raw, args=(listening, memory.read(0), blocks), daemon=True)
    raw.start()
    running = asyncio.ensure_future(asyncio.to_thread(loop.run))
    async with AsyncExitStack() as stack:
        doors = {"raw": "{}:{}".format(*listening.getsockname())}
        certificates = partial(read_certificates, Path(settings["certificates"]))
        for door, credentials in (("plain", None), ("mtls", mutual(certificates))):
            served = await stack.enter_async_context(
                serving("127.0.0.1:0", register, (), grace_s=0, credentials=credentials)
            )
            doors[door] = served.address
        announce(doors)
        await stop.wait()
    loop.command(loop.stop)
    await running


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", type=Path, required=True)
    asyncio.run(serve(json.loads(parser.parse_args().config.read_text("utf-8"))))


if __name__ == "__main__":
    main()
