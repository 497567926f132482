"""`tokenway connect` prints settings that can be pasted as they are."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
import yaml

from services.launcher.__main__ import main
from services.launcher.client_settings import CLIENTS, Door

URL = "http://127.0.0.1:1"
DOOR = Door(URL, "small")


@pytest.fixture
def codec() -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/v1/models" else 404)
            self.end_headers()
            self.wfile.write(b'{"data": [{"id": "listed"}]}')

        def log_message(self, *_: object) -> None:
            return

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def exported(printed: str) -> dict[str, str]:
    lines = (line for line in printed.splitlines() if line.startswith("export "))
    return dict(shlex.split(line)[1].split("=", 1) for line in lines)


def test_the_model_is_the_first_of_the_codec(
    codec: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connect", "claude-code", "--url", codec + "/"]) == 0
    environ = exported(capsys.readouterr().out)
    assert environ["ANTHROPIC_BASE_URL"] == codec
    assert environ["ANTHROPIC_MODEL"] == "listed"


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_is_told_the_key(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOKENWAY_KEY", "tw_abcdefgh_x")
    assert main(["connect", name, "--url", URL, "--model", "small"]) == 0
    printed = capsys.readouterr().out
    assert "tw_abcdefgh_x" in printed
    assert "unused" not in printed


@pytest.mark.parametrize("name", CLIENTS)
def test_every_client_is_told_where_and_which_model(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["connect", name, "--url", URL, "--model", "small"]) == 0
    printed = capsys.readouterr().out
    assert URL in printed
    assert "small" in printed
    assert not re.search(r"\b(URL|MODEL)\b", re.sub(r"export \w+", "", printed))
    settings = CLIENTS[name](DOOR)
    assert exported(printed) == settings.environ
    assert printed.endswith(f"{settings.use}\n")
    for path, text in settings.files.items():
        assert f"# ~/{path}\n{text}" in printed


def test_files_are_what_their_clients_read() -> None:
    (codex,) = CLIENTS["codex"](DOOR).files.values()
    assert tomllib.loads(codex)["model_providers"]["tokenway"]["base_url"] == f"{URL}/v1"
    (opencode,) = CLIENTS["opencode"](DOOR).files.values()
    assert json.loads(opencode)["provider"]["tokenway"]["options"]["baseURL"] == f"{URL}/v1"
    (continues,) = CLIENTS["continue"](DOOR).files.values()
    assert yaml.safe_load(continues)["models"][0]["apiBase"] == f"{URL}/v1"


def test_an_unknown_client_is_refused_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["connect", "netscape"])
    said = capsys.readouterr().err
    assert all(name in said for name in CLIENTS)


def test_a_codec_that_is_not_there_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["connect", "codex", "--url", "http://127.0.0.1:9"]) == 1
    assert "cannot reach http://127.0.0.1:9 (" in capsys.readouterr().err
