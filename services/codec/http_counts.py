"""HTTP pages that tell tokens and generate none."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request as HttpRequest
from starlette.responses import Response

from services.codec.codec import Codec
from services.codec.http_body import BodyLimits, body_of
from services.codec.http_boundary import exchange_of
from services.codec.http_reply import json_response
from services.codec.protocols.messages.reply import token_count as message_tokens
from services.codec.protocols.messages.request import parse_count
from services.codec.protocols.reading import Reading
from services.codec.protocols.responses.reply import token_count as input_tokens
from services.codec.protocols.responses.request import parse as parse_response
from services.codec.protocols.tokenization import Tokens, parse_text, parse_tokens, text_told
from services.codec.request import Request

Parse = Callable[[Reading, bytes], Request]


class CountPages:
    """Counts are those of the same request's usage: they come by the same way."""

    def __init__(self, codec: Codec, body: BodyLimits) -> None:
        self._codec = codec
        self._body = body

    async def message_tokens(self, request: HttpRequest) -> Response:
        return json_response(message_tokens(len(await self._ids(parse_count, request))))

    async def input_tokens(self, request: HttpRequest) -> Response:
        return json_response(input_tokens(len(await self._ids(parse_response, request))))

    async def tokenize(self, request: HttpRequest) -> Response:
        ids = await self._ids(parse_text, request)
        return json_response(
            Tokens(ids=ids, context_length=self._codec.model.context_length).told()
        )

    async def detokenize(self, request: HttpRequest) -> Response:
        parsed = await self._parsed(parse_tokens, request)
        return json_response(text_told(self._codec.encoder.raw_text(parsed.raw_prompts[0])))

    async def _ids(self, parse: Parse, request: HttpRequest) -> list[int]:
        parsed = await self._parsed(parse, request)
        return await self._codec.prompt_ids(parsed, exchange_of(request.scope))

    async def _parsed(self, parse: Parse, request: HttpRequest) -> Request:
        body = await body_of(request.scope, request.receive, self._body)
        return await self._codec.parse(parse, body, exchange_of(request.scope))
