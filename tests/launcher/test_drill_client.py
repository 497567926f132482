"""What the client of a drill makes of the answers that it gets."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from services.launcher.chat import CodecDoor
from services.launcher.drill_client import DrillClient, Seen, Verdict
from services.launcher.drill_report import Report

ANSWER = ("One", " two", " three")


def frame(value: object) -> bytes:
    return f"data: {json.dumps(value)}\n\n".encode()


def texts(*pieces: str) -> bytes:
    return b"".join(frame({"choices": [{"delta": {"content": piece}}]}) for piece in pieces)


DONE = b"data: [DONE]\n\n"
ERROR = {"error": {"message": "the model cannot be served now"}}


@contextmanager
def answering(status: int, body: bytes) -> Iterator[DrillClient]:
    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Door)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        door = CodecDoor(f"http://127.0.0.1:{server.server_port}")
        yield DrillClient(door=door, model="any", number=3, tokens=3)
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


RIGHT = Seen(text="One two three", failure=None, longest_gap_s=0.0)


@pytest.mark.parametrize(
    ("status", "body", "verdict", "failure"),
    [
        (200, texts(*ANSWER) + b": keep-alive\n\n" + DONE, Verdict.EXACT, None),
        (200, texts("One", " two") + DONE, Verdict.WRONG, None),
        (200, texts("One", " two", " two", " three") + DONE, Verdict.WRONG, None),
        (200, texts("One", " two"), Verdict.FAILED, "the stream was cut"),
        (200, texts("One", " three"), Verdict.WRONG, "the stream was cut"),
        (
            200,
            texts("One") + frame(ERROR),
            Verdict.FAILED,
            "ended by an error: the model cannot be served now",
        ),
        (
            503,
            json.dumps(ERROR).encode(),
            Verdict.FAILED,
            "refused with 503: the model cannot be served now",
        ),
        (502, b"<html>", Verdict.FAILED, "refused with 502: without a reason"),
    ],
)
def test_an_answer_is_exact_wrong_or_failed(
    status: int, body: bytes, verdict: Verdict, failure: str | None
) -> None:
    with answering(status, body) as client:
        seen = client.ask()
    assert seen.failure == failure
    assert seen.verdict(RIGHT) is verdict


def test_nobody_there_is_a_failure_with_its_reason() -> None:
    door = CodecDoor("http://127.0.0.1:1")
    seen = DrillClient(door=door, model="any", number=0, tokens=1).ask()
    assert seen.failure == "the connection broke: ConnectionRefusedError"
    assert seen.verdict(RIGHT) is Verdict.FAILED


def report(*seen: Seen, back_s: float | None = 1.5) -> Report:
    return Report(fault="kill of engine 0", undisturbed=[RIGHT], disturbed=[seen], back_s=back_s)


CUT = Seen(text="One", failure="the stream was cut", longest_gap_s=2.0)
WRONG = Seen(text="One three", failure=None, longest_gap_s=0.1)


def test_a_report_counts_and_tells_reasons() -> None:
    assert report(RIGHT, CUT, WRONG, RIGHT).lines() == [
        "fault     kill of engine 0",
        "requests  4 of 1 clients: 2 exact, 1 wrong, 1 failed",
        "          1 the stream was cut",
        "gap       longest 2000 ms without a token, undisturbed 0 ms",
        "back      after 1.5 s",
    ]


def test_the_status_says_whether_tokens_were_wrong_or_the_replica_stays_away() -> None:
    assert report(RIGHT, CUT).status == 0
    assert report(RIGHT, WRONG).status == 1
    assert report(RIGHT, back_s=None).status == 1
