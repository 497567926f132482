"""Texts of callers stand in log lines and break none, whatever is in them."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from services.shared.logs import JsonFormatter
from tests.codec_bed import MODEL, BedMaker
from tests.raw_peer import speak

ODD = 'a\n{"level": "error"}\r\x1b[31m\x00\x7f\x9b\u2028\u202e'


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What the process would write to its log."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter("codec"))
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield stream
    root.removeHandler(handler)
    root.setLevel(level)


def told(text: str) -> list[dict[str, Any]]:
    """Each line is printable ASCII and one object."""
    found = []
    for line in text.removesuffix("\n").split("\n"):
        assert line.isascii()
        assert line.isprintable()
        found.append(json.loads(line))
    return found


def test_messages_fields_and_exceptions_are_on_one_line() -> None:
    odd = f"{ODD}\ud800"
    error = LookupError(odd)
    fields = {odd: odd, "list": [odd], "level": "info", "message": "another"}
    record = logging.makeLogRecord(
        {
            "msg": "odd %s",
            "args": (odd,),
            "levelname": "ERROR",
            "exc_info": (type(error), error, None),
            "fields": fields,
        }
    )
    (line,) = told(JsonFormatter("codec").format(record))
    assert line["message"] == f"odd {odd}"
    assert line["level"] == "error"
    assert line[odd] == odd
    assert odd in line["exception"]


@pytest.mark.parametrize(
    "field", ["model", "user", "tool_choice", ODD], ids=["model", "user", "tool", "odd"]
)
async def test_requests_with_odd_texts_leave_lines_that_can_be_read(
    beds: BedMaker, lines: io.StringIO, field: str
) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], field: ODD}
    async with beds.bed(beds.engine(beds.says("fine"))) as bed, httpx.AsyncClient() as client:
        data = json.dumps(body).encode()
        path = "/v1/chat/completions"
        await client.post(f"{bed.url}{path}", content=data, headers={"x-request-id": "a\tb"})
        await client.post(f"{bed.url}/v1/a%0a%1b%5b31m%00%e2%80%a8", content=data)
        head = b"POST /v1/\x1b[31m HTTP/1.1\r\nhost: x\r\nx-request-id: a\x1bb\r\n\r\n"
        await speak(bed.service.http, head)
    requests = [line for line in told(lines.getvalue()) if line["message"] == "request"]
    assert len(requests) >= 2
    assert all(line["request_id"].startswith("req_") for line in requests)
