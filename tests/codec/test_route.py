"""Why an answer came from where it came, in a header that any client can read."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest
from google.api.httpbody_pb2 import HttpBody
from tokenway.codec.v1 import codec_pb2_grpc as rpc

from services.shared.channel import open_channel
from tests.codec_bed import MODEL, BedMaker

BODY: dict[str, Any] = {
    "model": MODEL,
    "max_tokens": 50,
    "messages": [{"role": "user", "content": "hi"}],
}
HEADER = "x-tokenway-route"


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("routed", "told"),
    [
        ("prefix: 128 of 140 tokens", "prefix: 128 of 140 tokens"),
        ("a\r\nset-cookie: b é", "a??set-cookie: b ?"),
        ("x" * 1000, "x" * 200),
        ("", None),
    ],
)
async def test_the_route_is_told(
    beds: BedMaker, path: str, stream: bool, routed: str, told: str | None
) -> None:
    engine = beds.engine(beds.says("fine"))
    engine.routed = routed
    body = BODY | {"stream": stream}
    async with beds.bed(engine) as bed:
        async with httpx.AsyncClient(base_url=bed.url) as client:
            answer = await client.post(path, json=body)
        async with open_channel(bed.service.grpc) as channel:
            call: Any = rpc.CodecServiceStub(channel).Messages(
                HttpBody(data=json.dumps(body).encode())
            )
            assert [part async for part in call]
            trailing = dict(await call.trailing_metadata())
    assert answer.status_code == 200
    assert answer.headers.get(HEADER) == trailing.get(HEADER) == told
