"""What both doors do: parse, count, answer."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from time import monotonic, time

from services.codec.answer import Answer
from services.codec.conversation import Conversation
from services.codec.decoding import Decoding
from services.codec.engine_link import Engine, EngineLink
from services.codec.events import Heartbeat, OutputEvent
from services.codec.exchange import Exchange
from services.codec.generation import Terms, generation_of, max_tokens_of, room
from services.codec.prompt import PromptEncoder
from services.codec.protocols.reading import Reading
from services.codec.protocols.reply import Reply
from services.codec.public_error import public_error
from services.codec.request import Request
from services.codec.running import Running
from services.codec.served_model import ServedModel
from services.shared.digest import token_digest
from services.shared.errors import Code, DeadlineExceeded, Overloaded, ServiceError, Unsupported
from services.shared.stream.events import CancelReason, Failed
from services.shared.stream.generation import Generation
from services.shared.telemetry import span

INLINE_BODY_BYTES = 16 * 2**10
"""Smaller bodies are parsed at once; the way to another thread would take longer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Requests at a time, seconds for each, seconds of silence before a heartbeat."""

    concurrency: int
    timeout_s: float
    heartbeat_s: float


class Codec:
    """Text in, text out, over one engine."""

    def __init__(
        self,
        encoder: PromptEncoder,
        link: EngineLink,
        model: ServedModel,
        limits: Limits,
        reading: Reading,
    ) -> None:
        self.encoder = encoder
        self._link = link
        self._model = model
        self._limits = limits
        self._reading = reading
        self._taken = 0
        self._running: set[Running] = set()

    @property
    def model(self) -> ServedModel:
        return replace(self._model, context_length=self._link.context_length())

    @property
    def fault(self) -> str | None:
        """Why nothing can be served, or None."""
        return self._link.fault

    async def parse(self, parse: Callable[[Reading, bytes], Request], body: bytes) -> Request:
        """Raises InvalidRequest, or NotFound for an unknown model."""
        if len(body) <= INLINE_BODY_BYTES:
            request = parse(self._reading, body)
        else:
            request = await asyncio.to_thread(parse, self._reading, body)
        self._model.check(request.model)
        return request

    def reply(self, request: Request, exchange: Exchange) -> Reply:
        """What the answer will say of itself."""
        return Reply(
            reply_id=secrets.token_hex(12),
            request_id=exchange.request_id,
            created=int(time()),
            request=request,
            seal=self._reading.seal,
        )

    async def prompt_ids(self, request: Request, exchange: Exchange) -> list[int]:
        """Token IDs of the prompt, encoded in another thread."""
        figures = exchange.figures
        with span("codec.encode", exchange.trace):
            if not isinstance(request.prompt, Conversation):
                raise Unsupported("prompts without a conversation are not supported yet")
            ids = await asyncio.to_thread(self.encoder.encode, request.prompt)
        figures["prompt_tokens"] = len(ids)
        figures["prompt_digest"] = token_digest(ids)
        return ids

    async def encode_text(self, text: str) -> list[int]:
        """Token IDs of plain text, encoded in another thread."""
        return await asyncio.to_thread(self.encoder.encode_text, text)

    async def answer(
        self, request: Request, exchange: Exchange
    ) -> AsyncGenerator[list[OutputEvent], None]:
        """Yields what is to be told together. Close it (`aclosing`) to cancel the generation.

        Raises:
            ServiceError: at any point; before the first batch nothing was told.
        """
        with self._slot():
            engine = self._link.engine()
            prompt_ids = await self.prompt_ids(request, exchange)
            available = room(len(prompt_ids), engine.context_length)
            max_tokens = max_tokens_of(request, available)
            terms = Terms(
                request_id=exchange.request_id,
                model=engine.model,
                max_tokens=max_tokens,
                timeout_ms=max(1, int(1000 * self._limits.timeout_s)),
            )
            generation = generation_of(request, prompt_ids, terms)
            answer = Answer(self._decoding(request), fills_context=max_tokens == available)
            with span("codec.decode", exchange.trace) as trace:
                try:
                    with self._submitted(engine, generation, trace.traceparent) as running:
                        async with aclosing(self._batches(running, answer)) as batches:
                            async for batch in batches:
                                yield batch
                finally:
                    exchange.figures.update(answer.figures())

    def give_up(self) -> None:
        """Ends all answers with an error, for a process that must end."""
        for running in self._running:
            running.give_up(Failed(code=Code.UNAVAILABLE, message="the codec stops"))

    @contextmanager
    def _submitted(
        self, engine: Engine, generation: Generation, traceparent: str
    ) -> Iterator[Running]:
        wake_s = min(self._limits.heartbeat_s, self._limits.timeout_s)
        try:
            running = Running(engine.source, generation, traceparent, wake_s)
        except ServiceError as error:
            raise public_error(error) from error
        with running:
            self._running.add(running)
            try:
                yield running
            finally:
                self._running.discard(running)

    async def _batches(
        self, running: Running, answer: Answer
    ) -> AsyncGenerator[list[OutputEvent], None]:
        deadline = monotonic() + self._limits.timeout_s
        while not answer.is_complete:
            events = await running.events()
            if monotonic() >= deadline:
                running.cancel(CancelReason.DEADLINE)
                raise DeadlineExceeded("the time for the request is over")
            batch = answer.take(events)
            if answer.is_stopped:
                running.cancel(CancelReason.STOP_TEXT)
            if batch:
                yield batch
            elif not events and answer.has_started:
                yield [Heartbeat()]
            if answer.failure is not None:
                raise answer.failure

    def _decoding(self, request: Request) -> Decoding:
        tokenizer = self.encoder.tokenizer
        show = request.delivery.show_control_tokens
        shown = tokenizer.control_ids if show else frozenset()
        return Decoding(tokenizer, request.ending, shown=shown)

    @contextmanager
    def _slot(self) -> Iterator[None]:
        if self._taken >= self._limits.concurrency:
            raise Overloaded("the server is busy, try again later")
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
