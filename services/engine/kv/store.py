"""The store behind a service cache."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from services.engine.kv.record import Payload


class StoreFailed(Exception):
    """A store that does not answer, refuses or is full; the text tells people why."""


class StoreTimeout(StoreFailed):
    """A store that does not answer in time."""


class Store(Protocol):
    """Keeps records by address, for a time, until they give way.

    For any thread; each call may block. A store is made for one KV layout and has a namespace of
    its own for it. It knows no checksum of blocks: whoever reads checks. Calls raise StoreFailed
    and nothing else.
    """

    def get(self, address: bytes) -> Payload | None:
        """The record, or None. It counts as used now."""

    def put(self, address: bytes, record: Payload) -> None:
        """Keeps it; of two puts under one address one counts, whichever.

        The memory of `record` is used for something else as soon as the call has ended.
        """

    def present(self, addresses: Sequence[bytes]) -> list[bool]:
        """Which of them it has, without reading them. May be wrong about single ones."""

    def flush(self) -> int:
        """Drops all records of this layout and tells how many, as far as it knows."""

    def close(self) -> None:
        """Ends connections; nothing is called after it."""
