"""What both doors do: parse, count, answer."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, replace
from random import Random
from time import monotonic, time

from services.codec.answer import Answer, AnswerTerms
from services.codec.constraint import may_constrain
from services.codec.conversation import Conversation
from services.codec.engine_link import Engine, EngineLink
from services.codec.events import Heartbeat, OutputEvent
from services.codec.exchange import Exchange
from services.codec.filtering.screening import Screening
from services.codec.generation import (
    Room,
    Terms,
    generations_of,
    room_for,
    tokens_expected,
)
from services.codec.head import EncodedPrompt
from services.codec.outputs import Outputs
from services.codec.pressure import Pressure
from services.codec.prompt import PromptEncoder
from services.codec.protocols.reading import Reading
from services.codec.protocols.reply import Reply
from services.codec.public_error import public_error
from services.codec.request import Request
from services.codec.running import Running
from services.codec.served_model import ServedModel
from services.codec.telling import note, with_timeline
from services.codec.thinking import with_reasoning
from services.shared.access.caller import Caller
from services.shared.access.quota import Quota
from services.shared.access.tenant_limits import Priority
from services.shared.access.tenant_quotas import TenantQuotas
from services.shared.digest import token_digest
from services.shared.errors import (
    Code,
    DeadlineExceeded,
    InvalidRequest,
    ServiceError,
)
from services.shared.stream.events import CancelReason, Failed
from services.shared.stream.generation import Constraint, Generation
from services.shared.telemetry import span

INLINE_BODY_BYTES = 16 * 2**10
"""Smaller bodies are parsed at once; the way to another thread would take longer."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What a codec takes.

    Args:
        concurrency: requests at a time.
        choices: of a request.
        timeout_s: seconds that a request may take.
        heartbeat_s: seconds of silence before a sign of life.
        quotas: of each tenant.
        screening: of what is asked and answered, if there is a filter.
    """

    concurrency: int
    choices: int
    timeout_s: float
    heartbeat_s: float
    quotas: TenantQuotas
    screening: Screening | None = None


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
        screening = limits.screening
        self._outputs = Outputs(
            encoder.tokenizer, encoder.family, None if screening is None else screening.maker
        )
        self._link = link
        self._model = model
        self._limits = limits
        self._reading = reading
        self._quotas = limits.quotas
        self._pressure = Pressure(limits.concurrency, link.load, Random().random)  # noqa: S311 no secret
        self._running: set[Running] = set()

    @property
    def model(self) -> ServedModel:
        return replace(self._model, context_length=self._link.context_length())

    def model_of(self, caller: Caller) -> ServedModel:
        """The model under the names that the caller may ask for."""
        return self.model.only(self._quotas.of(caller.tenant).limits.models)

    @property
    def fault(self) -> str | None:
        """Why nothing can be served, or None."""
        return self._link.fault

    def refusal(self) -> ServiceError | None:
        """Why no request would be answered now, whatever it asks; None while they are."""
        return self._link.absence() or self._pressure.refusal()

    async def parse(
        self, parse: Callable[[Reading, bytes], Request], body: bytes, exchange: Exchange
    ) -> Request:
        """Raises InvalidRequest, or NotFound for a model that the caller does not know."""
        if len(body) <= INLINE_BODY_BYTES:
            request = parse(self._reading, body)
        else:
            request = await asyncio.to_thread(parse, self._reading, body)
        self.model_of(exchange.caller).check(request.model)
        account = exchange.account
        account.model, account.choices = request.model, request.choices
        account.stream = request.delivery.stream
        if request.choices > self._limits.choices:
            raise InvalidRequest(
                f"n must be <= {self._limits.choices}, got {request.choices}", field="n"
            )
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
        """Token IDs of the prompt, or of all prompts, encoded in another thread."""
        return [token for one in await self._prompts(request, exchange) for token in one.ids]

    async def _prompts(self, request: Request, exchange: Exchange) -> list[EncodedPrompt]:
        with span("codec.encode", exchange.trace):
            tenant = exchange.caller.tenant or ""
            prompts = await asyncio.to_thread(self._encoded, request, tenant)
        exchange.figures["prompt_tokens"] = sum(len(prompt.ids) for prompt in prompts)
        exchange.account.encoded_s = exchange.elapsed_s()
        exchange.figures["prompt_digest"] = ",".join(token_digest(one.ids) for one in prompts)
        return prompts

    def _encoded(self, request: Request, tenant: str) -> list[EncodedPrompt]:
        prompt, encoder = request.prompt, self.encoder
        if not isinstance(prompt, Conversation):
            return [EncodedPrompt(encoder.encode_raw(raw)) for raw in prompt.prompts]
        asked = with_reasoning(prompt, request.reasoning, encoder.variables)
        return [encoder.encode_with_head(asked, tenant)]

    async def _constraint(self, request: Request, prompts: list[list[int]]) -> Constraint | None:
        if not may_constrain(request):
            return None
        return await asyncio.to_thread(self._outputs.constraint, request, prompts)

    async def encode_text(self, text: str, caller: Caller) -> list[int]:
        """Token IDs of plain text, encoded in another thread."""
        return await asyncio.to_thread(self.encoder.encode_text, text, caller.tenant or "")

    async def answer(
        self, request: Request, exchange: Exchange
    ) -> AsyncGenerator[list[OutputEvent], None]:
        """Yields what is to be told together. Close it (`aclosing`) to cancel the generation.

        Raises:
            ServiceError: at any point; before the first batch nothing was told.
        """
        with self._pressure.place():
            engine = self._link.engine()
            if self._limits.screening is not None:
                await self._limits.screening.check(request, self.encoder.raw_text, exchange)
            encoded = await self._prompts(request, exchange)
            prompts = [prompt.ids for prompt in encoded]
            quota = self._quotas.of(exchange.caller.tenant)
            most = quota.limits.max_tokens
            rooms = [room_for(request, one, engine.context_length, most) for one in encoded]
            count = len(rooms) * request.choices
            expected, tenant = tokens_expected(request, rooms), exchange.caller.tenant
            async with self._quotas.reserve(tenant, expected, count) as reservation:
                constraint = await self._constraint(request, prompts)
                terms = self._terms(exchange, engine, quota, constraint)
                generations = generations_of(request, rooms, terms)
                answer = self._answer(request, prompts, rooms)
                with span("codec.decode", exchange.trace) as trace:
                    try:
                        exchange.account.is_submitted = True
                        with self._submitted(engine, generations, trace.traceparent) as running:
                            async with aclosing(self._batches(running, answer)) as batches:
                                async for batch in batches:
                                    note(batch, answer, exchange)
                                    if request.delivery.timeline:
                                        yield with_timeline(batch, answer, exchange)
                                    else:
                                        yield batch
                    finally:
                        reservation.used = answer.used_tokens
                        exchange.figures.update(answer.figures())
                        answer.tell(exchange.account)

    def _terms(
        self, exchange: Exchange, engine: Engine, quota: Quota, constraint: Constraint | None
    ) -> Terms:
        return Terms(
            request_id=exchange.request_id,
            model=engine.model,
            timeout_ms=max(1, int(1000 * self._limits.timeout_s)),
            tenant=exchange.caller.tenant,
            is_batch=quota.limits.priority is Priority.BATCH,
            weight=quota.limits.weight,
            constraint=constraint,
        )

    def _answer(self, request: Request, prompts: list[list[int]], rooms: list[Room]) -> Answer:
        return Answer(
            self._outputs.cursors(request, prompts),
            AnswerTerms(
                fills_context=[room.is_all for room in rooms],
                prompt_ids=tuple(prompts[0]) if request.delivery.token_ids else None,
                prompt_texts=self._echoed(request),
            ),
        )

    def _echoed(self, request: Request) -> tuple[str, ...]:
        prompt = request.prompt
        if isinstance(prompt, Conversation) or not request.delivery.echo:
            return ()
        return tuple(map(self.encoder.raw_text, prompt.prompts))

    def give_up(self) -> None:
        """Ends all answers with an error, for a process that must end."""
        for running in self._running:
            running.give_up(Failed(code=Code.UNAVAILABLE, message="the codec stops"))

    @contextmanager
    def _submitted(
        self, engine: Engine, generations: list[Generation], traceparent: str
    ) -> Iterator[Running]:
        wake_s = min(self._limits.heartbeat_s, self._limits.timeout_s)
        try:
            running = Running(engine.source, generations, traceparent, wake_s)
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
            for choice in answer.stopped():
                running.cancel(CancelReason.STOP_TEXT, choice)
            if batch:
                yield batch
            elif not events and answer.has_started:
                yield [Heartbeat()]
            if answer.failure is not None:
                raise answer.failure
