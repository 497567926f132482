"""Events reach the file behind the calls, and what does not is told in the log."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from services.shared.audit.audit import NO_AUDIT
from services.shared.audit.audit_file import AuditFile
from services.shared.audit.event import MAX_CHARACTERS
from services.shared.audit.opening import auditing
from services.shared.tls.settings import MeshSettings
from tests.redis_server import wait_for
from tests.shared.audit.noted import an_event, events_in, noting
from tests.waiting import PATIENCE_S


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.jsonl"


def lost(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    lines = [line for line in caplog.records if line.levelno == logging.ERROR]
    assert {line.getMessage() for line in lines} <= {"an event is not in the audit file"}
    return [vars(line)["fields"] for line in lines]


def test_an_event_says_who_did_what_when_and_how_it_ended(path: Path) -> None:
    with noting(path) as audit:
        audit.note(
            an_event(
                who="spiffe://tokenway/admin/ops",
                what="127.0.0.1:9100",
                address="10.0.0.1",
                request_id="r1",
                trace_id="ab",
                times=3,
            )
        )
        wait_for(lambda: audit.written)
        (event,) = events_in(path)
    assert event.pop("ts").endswith("Z")
    assert event == {
        "service": "router",
        "action": "drain",
        "who": "spiffe://tokenway/admin/ops",
        "address": "10.0.0.1",
        "what": "127.0.0.1:9100",
        "outcome": "done",
        "request_id": "r1",
        "trace_id": "ab",
        "times": 3,
    }


def test_what_others_chose_breaks_no_line_and_moves_no_cursor(path: Path) -> None:
    bad = '\r\n\x1b[2J\x00\u202e\u2028\ud800"}'
    with noting(path) as audit:
        audit.note(an_event(who=bad, what=bad * 100, address=bad, request_id=bad))
    (event,) = events_in(path)
    for name in ("who", "what", "address", "request_id"):
        assert event[name].isprintable()
        assert event[name].startswith(r"\r\n\x1b[2J\x00\u202e\u2028\ud800")
    assert len(event["what"]) == MAX_CHARACTERS
    assert len(path.read_bytes().splitlines()) == 1


def test_a_full_disk_harms_nothing_and_is_told(caplog: pytest.LogCaptureFixture) -> None:
    with noting(Path("/dev/full")) as audit:
        for number in range(3):
            audit.note(an_event(what=f"{number}"))
    assert (audit.written, audit.dropped) == (0, 3)
    told = lost(caplog)
    assert [fields["event"]["what"] for fields in told] == ["0", "1", "2"]
    assert {fields["error"] for fields in told} == {"No space left on device"}


def test_room_is_used_again(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.symlink_to("/dev/full")
    with noting(path) as audit:
        audit.note(an_event())
        wait_for(lambda: audit.dropped)
        path.unlink()
        audit.note(an_event())
    assert (audit.written, audit.dropped) == (1, 1)
    assert len(events_in(path)) == 1
    assert len(lost(caplog)) == 1


def test_a_queue_that_is_full_holds_up_nobody(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    audit = AuditFile(path, "router", size=8)  # its thread does not run yet
    for _ in range(20):
        audit.note(an_event())
    assert audit.dropped == len(lost(caplog)) == 12
    audit.start()
    audit.close(PATIENCE_S)
    assert (audit.written, audit.dropped) == (8, 12)


async def test_without_a_file_nothing_is_noted() -> None:
    async with auditing(MeshSettings(), "router") as audit:
        audit.note(an_event())
    assert audit is NO_AUDIT


async def test_what_waits_at_the_end_is_written(path: Path) -> None:
    async with auditing(MeshSettings(audit_file=path), "engine") as audit:
        for _ in range(100):
            audit.note(an_event())
    assert len(events_in(path)) == audit.written == 100
    audit.note(an_event())
    assert (audit.written, audit.dropped) == (100, 1)
