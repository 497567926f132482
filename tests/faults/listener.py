"""A client that sends one request and notes how far its answer has come."""

from __future__ import annotations

import asyncio

import httpx

from tests.faults.answer import Answer, streamed, tokens_in, whole
from tests.faults.asked import Asked
from tests.waiting import PATIENCE_S


class Listener:
    """Sends `asked` under a name of its own and hears the answer."""

    def __init__(self, asked: Asked, request_id: str) -> None:
        self.asked = asked
        self.request_id = request_id
        self.text = ""
        self._come = asyncio.Condition()
        self._begun = False

    async def hear(self, client: httpx.AsyncClient) -> Answer:
        """The answer; raises httpx.TransportError where the connection broke."""
        names = {"x-request-id": self.request_id}
        # No answer depends on what an engine has cached of another, its usage too.
        body = {**self.asked.body, "cache_salt": self.request_id}
        async with client.stream("POST", self.asked.path, json=body, headers=names) as answer:
            await self._note("")
            async for text in answer.aiter_text():
                await self._note(text)
        read = streamed if self.asked.streamed else whole
        return read(answer.status_code, self.text)

    @property
    def tokens(self) -> int:
        """What it was told so far; needs a stream that names them."""
        return tokens_in(self.text)

    async def until(self, tokens: int) -> None:
        """Returns when it was told so many."""
        async with asyncio.timeout(PATIENCE_S), self._come:
            await self._come.wait_for(lambda: self._begun and self.tokens >= tokens)

    async def _note(self, text: str) -> None:
        async with self._come:
            self._begun = True
            self.text += text
            self._come.notify_all()
