"""Who is refused at a codec stands in the audit file, and nothing of what was shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.codec_bed import BedMaker
from tests.security.guarded import BODY, Guarded, code_of, guarded_by
from tests.shared.audit.noted import events_in

WRONG = "tw_ab12cd34-not-a-key-of-ours"
CHAT = "/v1/chat/completions"
RPC = "/tokenway.codec.v1.CodecService/Encode"


async def refused(guarded: Guarded, **headers: str) -> str:
    """The request ID that was told."""
    answer = await guarded.client.post(CHAT, json=BODY, headers=headers)
    assert answer.status_code == 401
    return answer.headers["x-request-id"]


async def test_refusals_are_noted_once_and_then_counted(beds: BedMaker, tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    async with guarded_by(beds, tmp_path / "keys.json", audit_file=path) as guarded:
        callers = [f"caller-{number}" for number in range(5)]
        headers = [{"x-api-key": WRONG, "x-request-id": caller} for caller in callers]
        (name,) = {await refused(guarded, **shown) for shown in headers}
        await refused(guarded)
        await code_of(guarded.bed, RPC, (("x-api-key", WRONG),))
        answer = await guarded.client.post(CHAT, json=BODY, headers={"x-api-key": guarded.key})
        assert answer.status_code == 200
    noted = events_in(path)
    assert {(one["service"], one["action"], one["outcome"]) for one in noted} == {
        ("codec", "access", "refused")
    }
    assert {(one["who"], one["address"]) for one in noted} == {("address:127.0.0.1", "127.0.0.1")}
    told = [(one["what"], one.get("times", 1), one["request_id"]) for one in noted]
    first, nothing, again = told
    assert first == ("unknown key", 1, name)
    assert nothing[:2] == ("no key", 1)
    assert again == ("unknown key", 5, name)
    assert name not in callers
    assert "not-a-key" not in path.read_text()


@pytest.mark.parametrize("odd", ["a\x7fb", 'x" , "who": "root', "a\tb", "é" * 300])
async def test_headers_break_no_line(beds: BedMaker, tmp_path: Path, odd: str) -> None:
    path = tmp_path / "audit.jsonl"
    headers: dict[str, Any] = {
        "x-api-key": odd.encode(),
        "x-request-id": odd.encode(),
        "x-forwarded-for": odd.encode(),
    }
    proxy = {"trusted_proxies": ("127.0.0.1",)}
    async with guarded_by(beds, tmp_path / "keys.json", audit_file=path, **proxy) as guarded:
        await refused(guarded, **headers)
    (event,) = events_in(path)
    assert event["who"] == "address:unknown"
    assert event["request_id"].startswith("req_")


async def test_requests_are_refused_where_no_line_can_be_added(
    beds: BedMaker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    full = Path("/dev/full")
    async with guarded_by(beds, tmp_path / "keys.json", audit_file=full) as guarded:
        await refused(guarded, **{"x-api-key": WRONG})
    (line,) = [line for line in caplog.records if "not in the audit file" in line.getMessage()]
    assert vars(line)["fields"]["event"]["what"] == "unknown key"
