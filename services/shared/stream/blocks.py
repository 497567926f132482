"""Changes of the KV blocks that can be found at a server."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class BlockEvents:
    """Addresses that can be found now, and such that no longer can, since the last of these.

    Args:
        sequence: counts these events of a session, from 1; a gap tells that some were lost.
        snapshot: all that was told before is to be forgotten.
    """

    sequence: int
    snapshot: bool = False
    stored: Sequence[bytes] = ()
    dropped: Sequence[bytes] = ()


BlockSink = Callable[[BlockEvents], None]
