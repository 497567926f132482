"""`tokenway chat`: one question, its answer streamed to the terminal."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

from services.launcher.dev_key import own_key

DEFAULT_URL = "http://127.0.0.1:8080"
TIMEOUT_S = 300.0
MAX_LINE_BYTES = 2**20


class ChatFailed(Exception):
    """No answer, or not all of it; the text says why and what to do."""


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tokenway chat", description=__doc__)
    parser.add_argument("text", help="what to ask")
    parser.add_argument("--url", default=DEFAULT_URL, help=f"of the codec ({DEFAULT_URL})")
    parser.add_argument("--model", help="name of the model (the first that the codec has)")
    arguments = parser.parse_args(argv)
    key = own_key(arguments.url, os.environ)
    try:
        for piece in answer(arguments.url, arguments.model, arguments.text, key):
            sys.stdout.write(_harmless(piece))
            sys.stdout.flush()
    except ChatFailed as error:
        sys.stderr.write(f"\ntokenway chat: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    sys.stdout.write("\n")
    return 0


def answer(url: str, model: str | None, text: str, key: str | None = None) -> Iterator[str]:
    """The answer's text in pieces, as they come. Raises ChatFailed.

    Args:
        url: of the codec.
        model: its name; None takes the first that the codec has.
        text: what to ask.
        key: to show; None shows none.
    """
    url = url.rstrip("/")
    model = model or first_model(url, key)
    body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": True}
    with _open(url, "/v1/chat/completions", json.dumps(body).encode(), key) as response:
        yield from _pieces(response)


@contextmanager
def _open(url: str, path: str, data: bytes | None, key: str | None) -> Iterator[IO[bytes]]:
    """A GET, or a POST of `data`; what goes wrong inside the block is a ChatFailed, too."""
    headers = {"content-type": "application/json"}
    if key is not None:
        headers["authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{url}{path}", data, headers)  # noqa: S310 the user's own
    # No proxy: the codec is a neighbour.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as response:
            yield response
    except urllib.error.HTTPError as error:
        with error:
            raise ChatFailed(_told(error.read(MAX_LINE_BYTES), error.code)) from error
    except urllib.error.URLError as error:
        raise ChatFailed(f"cannot reach {url} ({error.reason}); start it with `make up`") from error
    except (OSError, http.client.HTTPException) as error:
        raise ChatFailed(f"the connection to {url} broke ({error}); ask again") from error


def first_model(url: str, key: str | None = None) -> str:
    """The first name that the codec lists. Raises ChatFailed."""
    with _open(url, "/v1/models", None, key) as response:
        listed = _json(response.read(MAX_LINE_BYTES))
    try:
        return str(listed["data"][0]["id"])
    except (LookupError, TypeError) as error:
        raise ChatFailed("the server lists no model; name one by --model") from error


def _pieces(response: IO[bytes]) -> Iterator[str]:
    while line := response.readline(MAX_LINE_BYTES):
        if not line.startswith(b"data:"):
            continue
        data = line.removeprefix(b"data:").strip()
        if data == b"[DONE]":
            return
        yield from _texts(_json(data))
    raise ChatFailed("the answer was cut off; ask again")


def _texts(event: Any) -> Iterator[str]:
    if not isinstance(event, dict):
        raise ChatFailed("the server does not speak Chat Completions")
    if "error" in event:
        raise ChatFailed(_message(event))
    for choice in event.get("choices", []):
        text = choice.get("delta", {}).get("content")
        if text:
            yield str(text)


def _told(body: bytes, status: int) -> str:
    event = _json(body)
    return _message(event) if isinstance(event, dict) else f"the server answered {status}"


def _message(event: dict[str, Any]) -> str:
    error = event.get("error")
    return str(error.get("message", error) if isinstance(error, dict) else error)


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        return None


def _harmless(text: str) -> str:
    """What a model says must not steer the terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else "\ufffd" for char in text)
