"""Questions to the store, answered in time or not at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis

from services.shared.access.shared_quotas.answer import (
    Answer,
    Question,
    answer_of,
    settling,
    taking,
)
from services.shared.access.shared_quotas.patience import within
from services.shared.access.shared_quotas.scripts import SCRIPTS
from services.shared.access.shared_quotas.store_connection import StoreConnection
from services.shared.access.tenant_limits import NO_LIMITS

NOBODY = ""
"""No tenant has this name."""


class StoreClient:
    """For one task at a time.

    Args:
        connection: to the store.
        prefix: what all keys begin with.
        timeout_s: what the questions that go together may take.
        lease_s: how long a reservation is held without being renewed.
    """

    def __init__(
        self, connection: StoreConnection, prefix: str, timeout_s: float, lease_s: float
    ) -> None:
        self._connection = connection
        self._prefix = prefix
        self._timeout_s = timeout_s
        self._lease_s = lease_s

    async def answers(self, questions: Sequence[Question]) -> list[Answer]:
        """In their order. Raises one of FAILURES; then nobody knows what was done."""
        return await within(self._timeout_s, self._answers(questions))

    async def probe(self, name: str) -> None:
        """Does all that is ever asked, for nobody, under a name of ours. Raises as `answers`."""
        member = f"{name}:0:1"
        questions = (taking(NOBODY, NO_LIMITS, member, 1), settling(NOBODY, NO_LIMITS, member, 0))
        await self.answers(questions)

    async def close(self) -> None:
        await self._connection.close()

    async def _answers(self, questions: Sequence[Question]) -> list[Answer]:
        commands = [question.command(self._prefix, self._lease_s) for question in questions]
        told = await self._connection.ask(commands)
        unknown = [at for at, one in enumerate(told) if _is_unknown(one)]
        if unknown:
            await self._connection.ask([("SCRIPT", "LOAD", script.text) for script in SCRIPTS])
            again = await self._connection.ask([commands[at] for at in unknown])
            for at, one in zip(unknown, again, strict=True):
                told[at] = one
        return [_answer(one) for one in told]


def _is_unknown(told: Any) -> bool:
    return isinstance(told, redis.exceptions.NoScriptError)


def _answer(told: Any) -> Answer:
    if isinstance(told, redis.ResponseError):
        raise told
    return answer_of(told)
