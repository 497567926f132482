"""Strange keys: refused without ado, and no line of the log is theirs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.shared.access.address_rules import AddressRules
from services.shared.access.denials import Denials
from services.shared.access.guard import Guard
from services.shared.access.key_ring import KeyRing
from services.shared.access.shown import Shown
from tests.raw_peer import speak
from tests.security.guarded import Guarded
from tests.security.http_exchange import LEAKS

HEAD = "GET /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
STRANGE = [
    *("' OR '1'='1", "x' UNION SELECT * FROM keys --", '"; DROP TABLE keys; --', "tw_%00", "tw_*"),
    *("Bearer", "Bearer Bearer x", "../../etc/passwd", "\x7f", "é" * 20, "{{7*7}}", "\t"),
    *("tw_" + "a" * 9000, "a" * 60_000, "eyJhbGciOiJub25lIn0.e30."),
]


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("header", ["authorization", "x-api-key"])
@pytest.mark.parametrize("text", STRANGE)
async def test_strange_keys_are_refused_without_ado(
    guarded: Guarded, header: str, text: str
) -> None:
    value = f"Bearer {text}" if header == "authorization" else text
    head = f"{HEAD}{header}: {value}\r\n\r\n"
    heard = await speak(guarded.bed.service.http, head.encode())
    assert heard.startswith((b"HTTP/1.1 401", b"HTTP/1.1 400"))
    assert not LEAKS.search(heard.decode("latin-1").partition("\r\n\r\n")[2])


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("inside", ["\n", "\r", "\0", "\r\n x", "a" * 1_000_000])
async def test_headers_that_are_none_are_the_transports_affair(
    guarded: Guarded, inside: str
) -> None:
    head = f"{HEAD}x-api-key: tw_{inside}y\r\n\r\n"
    heard = await speak(guarded.bed.service.http, head.encode())
    assert not heard or heard.startswith(b"HTTP/1.1 4")


class NoClock:
    def call_later(self, *_: Any) -> None:
        pass


@given(st.text(st.characters(min_codepoint=1, max_codepoint=255), max_size=300))
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_line_of_the_log_is_forged(caplog: pytest.LogCaptureFixture, text: str) -> None:
    """What a caller shows is in no line at all."""
    caplog.clear()
    guard = Guard(lambda: KeyRing([]), None, AddressRules((), ()), Denials(NoClock()))
    shown = Shown.of([("x-api-key", text), ("x-forwarded-for", text)])
    guard.admit(guard.found(shown), shown, "127.0.0.1")
    (line,) = [vars(record)["fields"] for record in caplog.records]
    assert line.pop("request_id").startswith("req_")
    assert set(line.values()) <= {"127.0.0.1", "no key", "unknown key", "no key of ours"}
