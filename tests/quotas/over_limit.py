"""More than a tenant may use, asked of all codecs for a while: what it was granted."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic

import httpx

from tests.quotas.codecs import CHAT, Codecs

CLIENTS = 6
"""Of each codec."""

PAUSE_S = 0.02
"""Who was refused comes again much earlier than told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Granted:
    """What came of it.

    Args:
        tokens: at each codec.
        refused: requests.
        due: tokens of the limit from the first answer until the last request that was refused came:
            but for what is less than one request, all of them were granted by then.
        most: tokens of the limit from before the first request until after the last answer.
    """

    tokens: Sequence[int]
    refused: int
    due: float
    most: float

    @property
    def share(self) -> float:
        """Of what was due; on a slow machine what flows in while the last answers end is more."""
        return min(sum(self.tokens), self.due) / self.due

    @property
    def excess(self) -> float:
        return max(0.0, sum(self.tokens) - self.most)


@dataclass(slots=True)
class _Count:
    tokens: int = 0
    refused: int = 0
    first_at: float = inf
    refused_at: float = 0.0


async def over_limit(
    codecs: Codecs, tenant: str, per_minute: int, seconds: float, max_tokens: int
) -> Granted:
    """Begins with a full bucket: due are a minute's worth and what flows in until the end.

    That is when `seconds` are over and nothing is left: each client goes when it is refused.
    """
    counts = [_Count() for _ in codecs.doors]
    each = [(count, codecs.client(at, tenant)) for at, count in enumerate(counts)]
    body, began = codecs.body(max_tokens), monotonic()
    async with asyncio.TaskGroup() as clients:
        for count, client in each:
            for _ in range(CLIENTS):
                clients.create_task(_ask(client, count, body, began + seconds))
    ended = monotonic()
    for _, client in each:
        await client.aclose()
    first_at = min(count.first_at for count in counts)
    refused_at = max(count.refused_at for count in counts)
    return Granted(
        tokens=[count.tokens for count in counts],
        refused=sum(count.refused for count in counts),
        due=per_minute * (1 + (refused_at - first_at) / 60),
        most=per_minute * (1 + (ended - began) / 60),
    )


async def _ask(
    client: httpx.AsyncClient, count: _Count, body: dict[str, object], until: float
) -> None:
    while True:
        asked_at = monotonic()
        answer = await client.post(CHAT, json=body)
        count.first_at = min(count.first_at, monotonic())
        if answer.status_code == 429:
            count.refused += 1
            count.refused_at = max(count.refused_at, asked_at)
            if monotonic() >= until:
                return
            await asyncio.sleep(PAUSE_S)
            continue
        answer.raise_for_status()
        count.tokens += answer.json()["usage"]["total_tokens"]
