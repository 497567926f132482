"""How much memory the KV pool may take."""

from __future__ import annotations

from pathlib import Path

import torch

from services.engine.settings import MemorySettings
from services.shared.config import BadConfig

CPU_DEFAULT_BYTES = 2 * 2**30


def pool_blocks(settings: MemorySettings, block_bytes: int, device: torch.device) -> int:
    """Blocks of the pool; raises BadConfig if it would not hold a single one."""
    size = settings.kv_cache_bytes or _default_bytes(settings.reserve_ratio, device)
    if size < block_bytes:
        raise BadConfig(
            f"executor.memory.kv_cache_bytes must be >= {block_bytes}, one block, got {size}"
        )
    return size // block_bytes


def _default_bytes(reserve_ratio: float, device: torch.device) -> int:
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        return int(free - reserve_ratio * total)
    return min(CPU_DEFAULT_BYTES, int(available_bytes() * (1 - reserve_ratio)))


def available_bytes() -> int:
    """Memory of this machine that can be taken without swapping."""
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return CPU_DEFAULT_BYTES
