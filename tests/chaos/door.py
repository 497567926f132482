"""The two doors of the codec, as clients use them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import grpc
import httpx
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1.codec_pb2_grpc import CodecServiceStub

from services.shared.channel import open_channel
from tests.faults.answer import Answer, streamed, whole
from tests.faults.asked import CHAT, Asked
from tests.integration.stack import PATIENCE_S, Stack


class Broken(Exception):
    """A connection ended without a word of why."""


class Door(Protocol):
    name: str

    async def ask(self, asked: Asked, request_id: str) -> Answer:
        """Raises Broken."""


class HttpDoor:
    """Server-sent events, or a whole body."""

    name = "http"

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def ask(self, asked: Asked, request_id: str) -> Answer:
        headers = {"x-request-id": request_id}
        try:
            answer = await self._client.post(asked.path, json=dict(asked.body), headers=headers)
        except httpx.TransportError as error:
            raise Broken(repr(error)) from error
        return _read(asked, answer.status_code, answer.text)


class GrpcDoor:
    """The same bytes, a message for each event."""

    name = "grpc"

    def __init__(self, channel: grpc.aio.Channel) -> None:
        stub: Any = CodecServiceStub(channel)
        self._chat, self._messages = stub.ChatCompletions, stub.Messages

    async def ask(self, asked: Asked, request_id: str) -> Answer:
        body = HttpBody(content_type="application/json", data=json.dumps(asked.body).encode())
        method = self._chat if asked.path == CHAT else self._messages
        text = ""
        try:
            async for part in method(body, metadata=(("x-request-id", request_id),)):
                text += part.data.decode()
        except grpc.aio.AioRpcError as error:
            if text:
                raise Broken(f"{error.code()} in the middle: {error.details()}") from error
            return _refused(error)
        return _read(asked, 200, text)


@asynccontextmanager
async def doors(stack: Stack) -> AsyncIterator[tuple[Door, Door]]:
    limits = httpx.Limits(max_connections=None)
    async with (
        httpx.AsyncClient(base_url=stack.url, timeout=PATIENCE_S, limits=limits) as client,
        open_channel(stack.codec.grpc) as channel,
    ):
        yield HttpDoor(client), GrpcDoor(channel)


def _read(asked: Asked, status: int, text: str) -> Answer:
    return (streamed if asked.streamed else whole)(status, text)


def _refused(error: grpc.aio.AioRpcError) -> Answer:
    """Before the first byte the status's text is the protocol's own error object."""
    try:
        return whole(error.code().value[0], error.details() or "")
    except ValueError as unreadable:
        raise Broken(f"{error.code()}: {error.details()}") from unreadable
