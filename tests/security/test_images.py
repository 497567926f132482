"""Images: the model reads text, so none is fetched, decoded or opened, whatever names it."""

from __future__ import annotations

import base64
import socket
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.integration.stack import Stack
from tests.security.http_exchange import CHAT, MESSAGES, connected, refused, serves

RESPONSES = "/v1/responses"
AT = "127.0.0.1:PORT"
TRICKS = (
    *("http://AT/x.png", "https://AT/x.png", "HTTP://AT/", "http:AT/x", "http:/AT/x", "//AT/x"),
    *("http://localhost:PORT/x", "http://LOCALHOST:PORT/x", "http://localhost.:PORT/x"),
    *("http://[::1]:PORT/x", "http://[::ffff:127.0.0.1]:PORT/x", "http://[::]:PORT/x"),
    *("http://0.0.0.0:PORT/x", "http://0:PORT/x", "http://127.1:PORT/x", "http://127.0.1:PORT/x"),
    *("http://2130706433:PORT/x", "http://0x7f000001:PORT/x", "http://0177.0.0.1:PORT/x"),
    *("http://127.0.0.1.:PORT/x", "http://127.0.0.1%00.example.com:PORT/x"),
    *("http://example.com\\@AT/x", "http://example.com@AT/x", "http://AT\\.example.com/x"),
    *("http://AT#@example.com/x", "http://AT?@example.com/x", "http://user:key@AT/x"),
    *("http://\tAT/x", " http://AT/x", "http://AT/\r\nx-a: b", "http://AT/%2e%2e/x"),
    *("http://①②⑦.0.0.1:PORT/x", "http://127。0。0。1:PORT/x", "http://l\u043ecalhost:PORT/x"),
    *(
        "ftp://AT/x",
        "gopher://AT/_x",
        "dict://AT/x",
        "ldap://AT/x",
        "unix:///run/x",
        "jar:http://AT/!x",
    ),
    *("file:///etc/passwd", "FILE:/etc/passwd", "file://AT/etc/passwd", "/etc/passwd", "..\\..\\x"),
    *(
        "data:text/html,<x>",
        "data:image/png;base64,%00",
        "javascript:1",
        "http://169.254.169.254/x",
    ),
)
"""PORT is that of somebody who listens and counts."""


def bomb() -> str:
    """A PNG of a few hundred kilobytes that says it has 50,000 by 50,000 pixels, as a URL."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            len(data).to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
        )

    size = (50_000).to_bytes(4, "big") * 2
    pixels = zlib.compress(bytes(2**24), 9) * 10
    png = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size + b"\x08\x06\0\0\0") + chunk(b"IDAT", pixels)
    return "data:image/png;base64," + base64.b64encode(png).decode()


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening


@pytest.fixture(scope="module")
def client(simulated_stack: Stack) -> Iterator[httpx.Client]:
    with connected(simulated_stack) as door:
        yield door


def asked(path: str, url: str) -> dict[str, Any]:
    """The content of a turn with an image from there."""
    if path == CHAT:
        return {"type": "image_url", "image_url": {"url": url}}
    if path == MESSAGES:
        return {"type": "image", "source": {"type": "url", "url": url}}
    return {"type": "input_image", "image_url": url}


def body(stack: Stack, part: Any) -> dict[str, Any]:
    turn = {"role": "user", "content": [part]}
    return {"model": stack.model, "max_tokens": 3, "messages": [turn], "input": [turn]}


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_no_url_is_fetched(
    simulated_stack: Stack, client: httpx.Client, listener: socket.socket, path: str
) -> None:
    assert len(TRICKS) >= 40
    port = listener.getsockname()[1]
    for trick in TRICKS:
        url = trick.replace("AT", AT).replace("PORT", str(port))
        answer = client.post(path, json=body(simulated_stack, asked(path, url)))
        message = refused(path, answer, 400)["message"]
        assert "image" in message
        assert str(port) not in message
    with pytest.raises(BlockingIOError):
        listener.accept()


def resident_bytes(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096


@pytest.mark.parametrize("path", [CHAT, MESSAGES, RESPONSES])
def test_an_image_that_is_larger_than_it_looks_is_refused_unopened(
    simulated_stack: Stack, client: httpx.Client, path: str
) -> None:
    content = body(simulated_stack, asked(path, bomb()))
    refused(path, client.post(path, json=content), 400)
    before = resident_bytes(simulated_stack.codec.process.pid)
    for _ in range(3):
        refused(path, client.post(path, json=content), 400)
    assert resident_bytes(simulated_stack.codec.process.pid) - before < 100 * 2**20
    assert serves(simulated_stack)


def test_nothing_that_the_services_import_reads_images() -> None:
    root = Path(__file__).parents[2]
    lock = (root / "requirements.lock").read_text()
    assert not [name for name in ("pillow", "opencv", "imageio", "av==") if name in lock]
