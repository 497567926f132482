"""CodecService: the same bytes as the HTTP door, over gRPC."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import aclosing, asynccontextmanager, contextmanager
from typing import Any

import grpc
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1 import codec_pb2 as pb
from tokenway.codec.v1 import codec_pb2_grpc as rpc

from services.codec.codec import Codec
from services.codec.detokenizer import Detokenizer
from services.codec.events import OutputEvent
from services.codec.exchange import Exchange, exchanging
from services.codec.frames import framed
from services.codec.protocols.chat_completions.protocol import CHAT_COMPLETIONS
from services.codec.protocols.completions.protocol import COMPLETIONS
from services.codec.protocols.messages.protocol import MESSAGES
from services.codec.protocols.messages.reply import token_count as message_tokens
from services.codec.protocols.messages.request import parse_count
from services.codec.protocols.models import model_list
from services.codec.protocols.reading import Reading
from services.codec.protocols.reply import Refusal
from services.codec.protocols.responses.protocol import RESPONSES
from services.codec.protocols.responses.reply import token_count as input_tokens
from services.codec.protocols.wire_protocol import WireProtocol
from services.codec.rate_headers import rate_headers
from services.codec.reception import Reception, denied
from services.codec.repeats import caller_of
from services.codec.request import Request
from services.codec.request_figures import Door
from services.codec.telling import wanting
from services.codec.told_timeline import HEADER
from services.shared.access.address_rules import peer_of
from services.shared.access.caller import Caller
from services.shared.access.guard import Denial
from services.shared.access.rpc_guard import current_caller
from services.shared.access.shown import Shown
from services.shared.bug_boundary import trace_of
from services.shared.errors import InvalidRequest, RequestTooLarge, ServiceError, error_of
from services.shared.request_id import request_id_from

JSON = "application/json"
EVENTS = "text/event-stream"

_PROTOCOLS = {
    "ChatCompletions": CHAT_COMPLETIONS,
    "Messages": MESSAGES,
    "Responses": RESPONSES,
    "Completions": COMPLETIONS,
    "CountTokens": MESSAGES,
    "CountInputTokens": RESPONSES,
}

Parse = Callable[[Reading, bytes], Request]

Context = Any
"""grpc.aio.ServicerContext is generic in the stubs only, and differs for each method."""


class CodecServicer(rpc.CodecServiceServicer):
    """Takes bodies of at most `max_body_bytes`."""

    def __init__(self, codec: Codec, reception: Reception, max_body_bytes: int) -> None:
        self._codec = codec
        self._reception = reception
        self._max_body_bytes = max_body_bytes

    async def ChatCompletions(self, request: HttpBody, context: Context) -> AsyncIterator[HttpBody]:
        async with aclosing(self._answered(CHAT_COMPLETIONS, request, context)) as bodies:
            async for body in bodies:
                yield body

    async def Messages(self, request: HttpBody, context: Context) -> AsyncIterator[HttpBody]:
        async with aclosing(self._answered(MESSAGES, request, context)) as bodies:
            async for body in bodies:
                yield body

    async def Responses(self, request: HttpBody, context: Context) -> AsyncIterator[HttpBody]:
        async with aclosing(self._answered(RESPONSES, request, context)) as bodies:
            async for body in bodies:
                yield body

    async def Completions(self, request: HttpBody, context: Context) -> AsyncIterator[HttpBody]:
        async with aclosing(self._answered(COMPLETIONS, request, context)) as bodies:
            async for body in bodies:
                yield body

    async def CountTokens(self, request: HttpBody, context: Context) -> HttpBody:
        tokens = await self._tokens(MESSAGES, parse_count, request, context)
        return HttpBody(content_type=JSON, data=message_tokens(tokens))

    async def CountInputTokens(self, request: HttpBody, context: Context) -> HttpBody:
        tokens = await self._tokens(RESPONSES, RESPONSES.parse, request, context)
        return HttpBody(content_type=JSON, data=input_tokens(tokens))

    async def ListModels(self, request: pb.ListModelsRequest, context: Context) -> HttpBody:
        model = self._codec.model_of(current_caller.get())
        return HttpBody(content_type=JSON, data=model_list(model))

    async def Encode(self, request: pb.EncodeRequest, context: Context) -> pb.EncodeResponse:
        async with self._entered():
            token_ids = await self._codec.encode_text(request.text, current_caller.get())
            return pb.EncodeResponse(token_ids=token_ids)

    async def Decode(
        self, request_iterator: AsyncIterator[pb.DecodeRequest], context: Context
    ) -> AsyncIterator[pb.DecodeResponse]:
        tokenizer = self._codec.encoder.tokenizer
        detokenizer = Detokenizer(tokenizer)
        async with self._entered():
            async for request in request_iterator:
                _check_ids(request.token_ids, tokenizer.vocabulary_size)
                if text := detokenizer.push(request.token_ids):
                    yield pb.DecodeResponse(text=text)
            if text := detokenizer.finish():
                yield pb.DecodeResponse(text=text)

    async def _tokens(
        self, protocol: WireProtocol, parse: Parse, body: HttpBody, context: Context
    ) -> int:
        with self._exchanging(protocol, context) as exchange:
            async with self._entered():
                parsed = await self._codec.parse(parse, self._data(body), exchange)
                return len(await self._codec.prompt_ids(parsed, exchange))

    async def _answered(
        self, protocol: WireProtocol, body: HttpBody, context: Context
    ) -> AsyncGenerator[HttpBody, None]:
        name, caller = _caller_name(context), current_caller.get()
        away = self._reception.sent_away(name, caller, protocol)
        if away is not None:
            names = (("x-request-id", away.request_id), *self._limits(caller, protocol))
            context.set_trailing_metadata(names)
            raise _as_told(away.error, away.refusal, away.retry_after_s)

        def note(error: ServiceError, request_id: str) -> None:
            self._reception.note(name, error, request_id)

        with (
            self._exchanging(protocol, context, note) as exchange,
            self._reception.open_requests.one(),
        ):
            await self._reception.enter(caller, for_answer=True)
            request = await self._codec.parse(protocol.parse, self._data(body), exchange)
            request = wanting(request, dict(context.invocation_metadata() or ()).get(HEADER))
            exchange.account.operation = protocol.name
            exchange.figures["stream"] = request.delivery.stream
            answer = self._streamed if request.delivery.stream else self._whole
            async with aclosing(answer(protocol, request, exchange)) as bodies:
                async for answer_body in bodies:
                    yield answer_body

    async def _streamed(
        self, protocol: WireProtocol, request: Request, exchange: Exchange
    ) -> AsyncGenerator[HttpBody, None]:
        stream = protocol.stream(self._codec.reply(request, exchange))
        async with (
            aclosing(self._codec.answer(request, exchange)) as batches,
            aclosing(framed(stream, batches, exchange)) as written,
        ):
            async for frames in written:
                for frame in frames:
                    yield HttpBody(content_type=EVENTS, data=frame)

    async def _whole(
        self, protocol: WireProtocol, request: Request, exchange: Exchange
    ) -> AsyncGenerator[HttpBody, None]:
        events: list[OutputEvent] = []
        async with aclosing(self._codec.answer(request, exchange)) as batches:
            async for batch in batches:
                events += batch
        data = protocol.whole(self._codec.reply(request, exchange), events)
        yield HttpBody(content_type=JSON, data=data)

    @contextmanager
    def _exchanging(
        self,
        protocol: WireProtocol,
        context: Context,
        note: Callable[[ServiceError, str], None] = lambda _, __: None,
    ) -> Iterator[Exchange]:
        """The exchange of a call; its errors carry the protocol's error object as their message."""
        metadata = dict(context.invocation_metadata() or ())
        request_id = request_id_from(metadata.get("x-request-id"))
        caller = current_caller.get()
        try:
            listeners = self._reception.listeners
            with exchanging(
                Door.GRPC, request_id, trace_of(context), caller, listeners
            ) as exchange:
                exchange.figures["path"] = protocol.name
                names = (("x-request-id", request_id), ("x-trace-id", exchange.trace.trace_id))
                context.set_trailing_metadata(names)
                try:
                    yield exchange
                finally:
                    routed = exchange.figures.get("routed")
                    route = (("x-tokenway-route", str(routed)),) if routed else ()
                    limits = self._limits(caller, protocol)
                    context.set_trailing_metadata((*names, *route, *limits))
        except ServiceError as error:
            note(error, request_id)
            refusal = protocol.refusal(error, request_id)
            raise _as_told(error, refusal, error.retry_after_s) from error

    def _limits(self, caller: Caller, protocol: WireProtocol) -> list[tuple[str, str]]:
        """What the caller's tenant may use and what is left of it."""
        if caller.tenant is None:
            return []
        headers = rate_headers(self._reception.quotas.of(caller.tenant), protocol)
        return [(name.decode(), value.decode()) for name, value in headers]

    @asynccontextmanager
    async def _entered(self) -> AsyncIterator[None]:
        with self._reception.open_requests.one():
            await self._reception.enter(current_caller.get(), for_answer=False)
            yield

    def _data(self, body: HttpBody) -> bytes:
        if len(body.data) > self._max_body_bytes:
            raise RequestTooLarge(f"the body must be at most {self._max_body_bytes} bytes")
        return bytes(body.data)


def _as_told(error: ServiceError, refusal: Refusal, retry_after_s: float | None) -> ServiceError:
    return error_of(error.code, refusal.body.decode(), error.field, retry_after_s)


def _caller_name(context: Context) -> bytes:
    shown = Shown.of(context.invocation_metadata() or ())
    return caller_of(current_caller.get(), shown, peer_of(context.peer()))


def denied_call(method: str, denial: Denial) -> ServiceError:
    """A denial in the words of the protocol that the method speaks, if it speaks one."""
    protocol = _PROTOCOLS.get(method.rpartition("/")[2])
    if protocol is None:
        return denial.error
    return _as_told(denial.error, denied(denial, protocol).refusal, None)


def _check_ids(ids: Any, vocabulary_size: int) -> None:
    highest = max(ids, default=0)
    if highest >= vocabulary_size:
        raise InvalidRequest(
            f"token_ids must be below {vocabulary_size}, got {highest}", field="token_ids"
        )


def register(servicer: CodecServicer, server: grpc.aio.Server) -> None:
    rpc.add_CodecServiceServicer_to_server(servicer, server)
