"""`tokenway chat` against a real HTTP server: it streams, and says clearly what went wrong."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from services.launcher.__main__ import main
from tests.certificates import Authority


@pytest.fixture(autouse=True)
def no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None of whoever runs the tests."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOKENWAY_KEY", raising=False)


@contextmanager
def codec(
    status: int,
    body: bytes,
    models: bytes = b'{"data": [{"id": "small"}]}',
    context: ssl.SSLContext | None = None,
) -> Iterator[tuple[str, list[Any]]]:
    """A server that answers every request so; gives its address and what it was asked."""
    asked: list[Any] = []

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(models)

        def do_POST(self) -> None:
            length = int(self.headers["content-length"])
            asked.append((self.path, json.loads(self.rfile.read(length))))
            asked.extend(self.headers.get_all("authorization", ()))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http{'' if context is None else 's'}://127.0.0.1:{server.server_port}", asked
        server.shutdown()


def test_an_answer_comes_over_https_where_its_authority_is_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = Authority(tmp_path).issue("codec")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.cert_file, files.key_file)
    with codec(200, stream("Hello"), context=context) as (url, _):
        assert url.startswith("https://")
        assert main(["chat", "--url", url, "--ca", str(files.ca_file), "hi"]) == 0
        assert capsys.readouterr().out == "Hello\n"
        assert main(["chat", "--url", url, "hi"]) == 1
        assert "name its authority by --ca" in capsys.readouterr().err
        assert main(["chat", "--url", url, "--ca", str(files.key_file), "hi"]) == 1
        assert "holds no authorities" in capsys.readouterr().err


def stream(*texts: str, end: bytes = b"data: [DONE]\n\n") -> bytes:
    events: list[Any] = [{"choices": [{"delta": {"role": "assistant"}}]}]
    events += [{"choices": [{"delta": {"content": text}}]} for text in texts]
    events += [{"choices": [{"delta": {}, "finish_reason": "stop"}]}, {"choices": []}]
    lines = [b": comment\n\n", *(f"data: {json.dumps(event)}\n\n".encode() for event in events)]
    return b"".join(lines) + end


def test_an_answer_is_printed_as_it_comes(capsys: pytest.CaptureFixture[str]) -> None:
    with codec(200, stream("The sky", " is", "\nblué")) as (url, asked):
        assert main(["chat", "why?", "--url", url + "/", "--model", "small"]) == 0
    assert capsys.readouterr().out == "The sky is\nblué\n"
    ((path, body),) = asked
    assert path == "/v1/chat/completions"
    assert body == {
        "model": "small",
        "messages": [{"role": "user", "content": "why?"}],
        "stream": True,
    }


def test_the_key_that_is_told_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENWAY_KEY", "tw_abcdefgh_x")
    with codec(200, stream("yes")) as (url, asked):
        assert main(["chat", "why?", "--url", url, "--model", "small"]) == 0
    assert asked[1:] == ["Bearer tw_abcdefgh_x"]


def test_without_a_name_the_first_model_of_the_codec_answers() -> None:
    with codec(200, stream("yes")) as (url, asked):
        assert main(["chat", "why?", "--url", url]) == 0
    models, (_, body) = asked
    assert models == "/v1/models"
    assert body["model"] == "small"


@pytest.mark.parametrize("models", [b"{}", b"", b'{"data": []}', b'{"data": [1]}'])
def test_a_codec_that_lists_no_model_is_told(
    models: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    with codec(200, stream("yes"), models) as (url, _):
        assert main(["chat", "why?", "--url", url]) == 1
    assert "the server lists no model; name one by --model" in capsys.readouterr().err


def test_what_a_model_says_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with codec(200, stream("a\x1b[2Jb\x07\x9bc\td")) as (url, _):
        assert main(["chat", "why?", "--url", url]) == 0
    assert capsys.readouterr().out == "a�[2Jb��c\td\n"


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (
            404,
            b'{"error": {"message": "model must be small, got x"}}',
            "model must be small, got x",
        ),
        (502, b"<html>", "the server answered 502"),
        (200, stream("half", end=b""), "the answer was cut off; ask again"),
        (200, b'data: {"error": {"message": "engine lost"}}\n\n', "engine lost"),
        (200, b"data: garbage\n\n", "the server does not speak Chat Completions"),
        (200, b"", "the answer was cut off"),
    ],
)
def test_a_failure_is_the_last_line(
    status: int, body: bytes, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with codec(status, body) as (url, _):
        assert main(["chat", "why?", "--url", url]) == 1
    assert capsys.readouterr().err.splitlines()[-1].startswith(f"tokenway chat: {said}")


@pytest.mark.parametrize("url", ["127.0.0.1:8080", "ftp://127.0.0.1", "http://", "http://h:x"])
def test_a_url_that_is_none_is_refused(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["chat", "why?", "--url", url])
    assert f"must be like https://host:8080, got {url!r}" in capsys.readouterr().err


def test_a_codec_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["chat", "why?", "--url", "http://127.0.0.1:9"]) == 1
    assert "cannot reach http://127.0.0.1:9 (" in capsys.readouterr().err
