"""Who asks, as far as blocks depend on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tokenway.engine.v1.engine_pb2 import DescribeResponse

from services.shared.addresses import next_address, root_address


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Args: tenant: None is nobody; salt: of the cache."""

    tenant: str | None = None
    salt: bytes = b""

    def addresses(self, prompt_ids: Sequence[int], engine: DescribeResponse) -> list[bytes]:
        """Of the prompt's blocks that a cache can give: of all tokens but the last.

        Computed by what docs/kv.md says, for an engine that describes itself so.
        """
        tenant = "" if engine.shares_blocks else self.tenant or ""
        size = engine.block_size
        address = root_address(engine.model_fingerprint, engine.kv_layout_id, self.salt, tenant)
        addresses = []
        for start in range(0, (len(prompt_ids) - 1) // size * size, size):
            address = next_address(address, prompt_ids[start : start + size])
            addresses.append(address)
        return addresses


NOBODY = Caller()
