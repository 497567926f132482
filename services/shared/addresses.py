"""Addresses of KV blocks: what a block holds, told by a hash of everything it depends on.

address(block) = BLAKE2b-128(address(parent) + token IDs as little-endian 32-bit integers); the
parent of the first block is the root of (model fingerprint, KV layout, salt, tenant).
docs/kv.md tells it for other programs.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Sequence
from hashlib import blake2b

ADDRESS_BYTES = 16


def root_address(model_fingerprint: str, layout_id: str, salt: bytes, tenant: str = "") -> bytes:
    """Parent of every first block under one model, layout, salt and tenant.

    Where tenants share their blocks, the tenant is empty.
    """
    digest = blake2b(digest_size=ADDRESS_BYTES, person=b"tokenway-kv-v1")
    for part in (model_fingerprint.encode(), layout_id.encode(), salt, tenant.encode()):
        digest.update(len(part).to_bytes(4, "little") + part)
    return digest.digest()


def next_address(parent: bytes, token_ids: Sequence[int]) -> bytes:
    """Address of the block that holds `token_ids` after the block at `parent`."""
    words = array("I", token_ids)
    if sys.byteorder == "big":
        words.byteswap()
    return blake2b(parent + words.tobytes(), digest_size=ADDRESS_BYTES).digest()
