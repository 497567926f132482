"""`tokenway chat`: one question, its answer streamed to the terminal."""

from __future__ import annotations

import argparse
import http.client
import json
import os
import ssl
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlsplit

from services.launcher.dev_key import own_key

DEFAULT_URL = "http://127.0.0.1:8080"
TIMEOUT_S = 300.0
MAX_LINE_BYTES = 2**20


class ChatFailed(Exception):
    """No answer, or not all of it; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class CodecDoor:
    """Where a codec answers over HTTP.

    Attributes:
        url: http or https, without a slash at its end.
        key: to show; None shows none.
        ca: a file of authorities to trust with HTTPS; None trusts those of the system.
    """

    url: str
    key: str | None = field(default=None, repr=False)
    ca: Path | None = None

    @classmethod
    def of(cls, arguments: argparse.Namespace) -> CodecDoor:
        """By the options of `add_door`."""
        return cls(arguments.url, own_key(arguments.url, os.environ), arguments.ca)

    @property
    def headers(self) -> dict[str, str]:
        """Of a request with a body."""
        shown = {} if self.key is None else {"authorization": f"Bearer {self.key}"}
        return {"content-type": "application/json", **shown}

    def trust(self) -> ssl.SSLContext:
        """For HTTPS. Raises ChatFailed."""
        try:
            return ssl.create_default_context(cafile=self.ca)
        except OSError as error:  # an SSLError is one
            raise ChatFailed(f"{self.ca} holds no authorities in PEM: {error}") from error


def add_door(parser: argparse.ArgumentParser) -> None:
    about = f"of the codec ({DEFAULT_URL})"
    parser.add_argument("--url", type=codec_url, default=DEFAULT_URL, help=about)
    add_ca(parser)


def codec_url(text: str) -> str:
    """Without a slash at its end. Raises ArgumentTypeError."""
    parts = urlsplit(text)
    try:
        is_good = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # such a port
        is_good = False
    if not is_good:
        raise argparse.ArgumentTypeError(f"must be like https://host:8080, got {text!r}")
    return text.rstrip("/")


def add_ca(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--ca", type=Path, metavar="FILE", help="authorities to trust with https (the system's)"
    )


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="tokenway chat", description=__doc__)
    parser.add_argument("text", help="what to ask")
    add_door(parser)
    parser.add_argument("--model", help="name of the model (the first that the codec has)")
    arguments = parser.parse_args(argv)
    try:
        for piece in answer(CodecDoor.of(arguments), arguments.model, arguments.text):
            sys.stdout.write(_harmless(piece))
            sys.stdout.flush()
    except ChatFailed as error:
        sys.stderr.write(f"\ntokenway chat: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    sys.stdout.write("\n")
    return 0


def answer(door: CodecDoor, model: str | None, text: str) -> Iterator[str]:
    """The answer's text in pieces, as they come. Raises ChatFailed.

    Args:
        door: of the codec.
        model: its name; None takes the first that the codec has.
        text: what to ask.
    """
    model = model or first_model(door)
    body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": True}
    with _open(door, "/v1/chat/completions", json.dumps(body).encode()) as response:
        yield from _pieces(response)


@contextmanager
def _open(door: CodecDoor, path: str, data: bytes | None) -> Iterator[IO[bytes]]:
    """A GET, or a POST of `data`; what goes wrong inside the block is a ChatFailed, too."""
    url = door.url
    request = urllib.request.Request(f"{url}{path}", data, door.headers)  # noqa: S310 the user's own
    # No proxy: the codec is a neighbour.
    handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=door.trust())
    opener = urllib.request.build_opener(*handlers)
    try:
        with opener.open(request, timeout=TIMEOUT_S) as response:
            yield response
    except urllib.error.HTTPError as error:
        with error:
            raise ChatFailed(_told(error.read(MAX_LINE_BYTES), error.code)) from error
    except urllib.error.URLError as error:
        if isinstance(error.reason, ssl.SSLCertVerificationError):
            fault = error.reason.verify_message
            raise ChatFailed(
                f"{url} is not trusted ({fault}); name its authority by --ca"
            ) from error
        raise ChatFailed(f"cannot reach {url} ({error.reason}); start it with `make up`") from error
    except (OSError, http.client.HTTPException) as error:
        raise ChatFailed(f"the connection to {url} broke ({error}); ask again") from error


def first_model(door: CodecDoor) -> str:
    """The first name that the codec lists. Raises ChatFailed."""
    with _open(door, "/v1/models", None) as response:
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
