"""One client of a drill: it streams the same answer again and again and compares."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from threading import Event
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from services.launcher.chat import CodecDoor

TIMEOUT_S = 60.0
MAX_LINE_BYTES = 2**20


class Verdict(StrEnum):
    """What became of a request, by the undisturbed answer to it."""

    EXACT = "exact"
    WRONG = "wrong"
    FAILED = "failed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Seen:
    """What a client saw of one answer.

    Attributes:
        text: what was streamed.
        failure: why it has no end; None where it has one.
        longest_gap_s: without a word, from the question on.
    """

    text: str
    failure: str | None
    longest_gap_s: float

    def verdict(self, undisturbed: Seen) -> Verdict:
        """A failed answer must be the beginning of the right one all the same."""
        if self.failure is None:
            return Verdict.EXACT if self.text == undisturbed.text else Verdict.WRONG
        return Verdict.FAILED if undisturbed.text.startswith(self.text) else Verdict.WRONG


@dataclass(frozen=True, kw_only=True, slots=True)
class DrillClient:
    """Asks for an answer that is drawn from its number alone.

    Attributes:
        door: of the codec.
        model: as the codec calls it.
        number: seed and part of the prompt.
        tokens: length of the answer.
    """

    door: CodecDoor
    model: str
    number: int
    tokens: int

    def ask(self) -> Seen:
        """One request, to its end."""
        pieces: list[str] = []
        failure: str | None = None
        last = monotonic()
        longest_s = 0.0
        try:
            for piece in self._pieces():
                now = monotonic()
                longest_s, last = max(longest_s, now - last), now
                pieces.append(piece)
        except _Broken as broken:
            failure = str(broken)
        except (OSError, http.client.HTTPException) as error:
            failure = f"the connection broke: {type(error).__name__}"
        longest_s = max(longest_s, monotonic() - last)
        return Seen(text="".join(pieces), failure=failure, longest_gap_s=longest_s)

    def ask_until(self, stop: Event) -> list[Seen]:
        """One request after the other; the last ends after `stop`."""
        seen = []
        while not stop.is_set():
            seen.append(self.ask())
            if seen[-1].failure is not None:
                stop.wait(0.2)  # a client that is refused asks no faster than that
        return seen

    def _pieces(self) -> Iterator[str]:
        url = f"{self.door.url}/v1/chat/completions"
        with closing(self._connection()) as connection:
            connection.request("POST", urlsplit(url).path, self._body(), self.door.headers)
            response = connection.getresponse()
            if response.status != 200:
                told = _message(response.read(MAX_LINE_BYTES))
                raise _Broken(f"refused with {response.status}: {told}")
            yield from _texts(response)

    def _connection(self) -> http.client.HTTPConnection:
        """Raises ChatFailed where HTTPS trusts in a file that holds no authorities."""
        url = urlsplit(self.door.url)
        host = url.hostname or ""
        if url.scheme == "https":
            trust = self.door.trust()
            return http.client.HTTPSConnection(host, url.port, timeout=TIMEOUT_S, context=trust)
        return http.client.HTTPConnection(host, url.port, timeout=TIMEOUT_S)

    def _body(self) -> bytes:
        prompt = f"Drill {self.number}: tell a story."
        body = {
            "model": self.model,
            "messages": [{"role": "user", "content": prompt}],
            "seed": self.number,
            "temperature": 1,
            "max_tokens": self.tokens,
            "ignore_eos": True,
            "stream": True,
        }
        return json.dumps(body).encode()


class _Broken(Exception):
    """An answer without its end; the text says why."""


def _texts(response: http.client.HTTPResponse) -> Iterator[str]:
    while line := response.readline(MAX_LINE_BYTES):
        data = line.removeprefix(b"data:").strip()
        if not line.startswith(b"data:"):
            continue
        if data == b"[DONE]":
            return
        event: dict[str, Any] = json.loads(data)
        if "error" in event:
            raise _Broken(f"ended by an error: {_message(data)}")
        for choice in event["choices"]:
            yield choice["delta"].get("content", "")
    raise _Broken("the stream was cut")


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body)["error"]["message"])
    except (ValueError, LookupError, TypeError):
        return "without a reason"
