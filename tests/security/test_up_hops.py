"""`tokenway up`: nobody speaks with a service who has no certificate of its authority."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import grpc
import httpx
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tokenway.router.v1.router_pb2 import DrainReplicaRequest, DrainReplicaResponse

from services.launcher.__main__ import main
from services.launcher.certs.authority import Authority
from services.launcher.certs.authority_folder import read_authority
from services.launcher.certs.issued import issue
from services.launcher.certs.subject import subject
from services.shared.model_folder import ModelFolder
from services.shared.tls.certificate_files import read_certificates
from services.shared.tls.identity import Role, server_name
from tests.certificates import Authority as CallersAuthority
from tests.integration.stack import PATIENCE_S
from tests.integration.up_process import UpProcess, up_process

CALL_S = 10
DOORS = {"router": Role.ROUTER, "engine": Role.ENGINE, "grpc": Role.CODEC}
"""Of gRPC, as `tokenway up` tells them, and whose they are."""

HTTPS = "callers"
HOPS = ("router", "engine")
"""Where only those are let in who show a certificate."""


@pytest.fixture(scope="module")
def up(model_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    """Two engines, and HTTPS for callers."""
    folder = tmp_path_factory.mktemp("up")
    https = CallersAuthority(folder, HTTPS).issue("https")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOKENWAY_SERVER__TLS__CERTIFICATE", str(https.cert_file))
        patch.setenv("TOKENWAY_SERVER__TLS__KEY", str(https.key_file))
        with up_process(folder, model_folder, "--replicas", "2") as running:
            yield running


@pytest.fixture
def certs(up: UpProcess) -> Path:
    return up.key_file.parent / "certs"


@pytest.fixture
def https_ca(up: UpProcess) -> Path:
    return up.key_file.with_name(f"{HTTPS}.pem")


@pytest.fixture
def here(up: UpProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the commands of the README are typed."""
    (tmp_path / ".tokenway").symlink_to(up.key_file.parent)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TOKENWAY_CERTIFICATES", raising=False)
    monkeypatch.delenv("TOKENWAY_KEY", raising=False)


def channel(address: str, folder: Path, name: str) -> grpc.Channel:
    files = read_certificates(folder)
    credentials = grpc.ssl_channel_credentials(files.ca, files.key, files.chain)
    return grpc.secure_channel(address, credentials, [("grpc.ssl_target_name_override", name)])


def health(opened: grpc.Channel) -> health_pb2.HealthCheckResponse:
    with opened:
        asked = health_pb2.HealthCheckRequest()
        answer: health_pb2.HealthCheckResponse = health_pb2_grpc.HealthStub(opened).Check(
            asked, timeout=CALL_S
        )
        return answer


def refused(opened: grpc.Channel) -> grpc.StatusCode:
    with pytest.raises(grpc.RpcError) as caught:
        health(opened)
    code: grpc.StatusCode = caught.value.code()
    return code


@pytest.mark.parametrize("door", DOORS)
def test_whoever_shows_what_was_made_here_is_answered(
    up: UpProcess, certs: Path, door: str
) -> None:
    name = server_name(DOORS[door])
    assert health(channel(up.address(door), certs / "admin", name)).status
    command = ["probe", up.address(door), "--timeout", "30", "--certificates"]
    assert main([*command, str(certs / "admin")]) == 0


@pytest.mark.parametrize("door", DOORS)
def test_nobody_is_answered_in_the_clear(up: UpProcess, door: str) -> None:
    assert refused(grpc.insecure_channel(up.address(door))) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("door", HOPS)
@pytest.mark.parametrize("shows", ["nothing", "foreign", "expired"])
def test_nobody_is_answered_who_shows_nothing_that_counts(
    up: UpProcess, certs: Path, tmp_path: Path, door: str, shows: str
) -> None:
    ours = read_certificates(certs / "admin")
    admin, life = subject("admin", "admin"), timedelta(days=1)
    match shows:
        case "foreign":
            issue(Authority.new(), admin, tmp_path, life)
            (tmp_path / "ca.pem").write_bytes(ours.ca)  # it trusts the server, not so the server
        case "expired":
            issue(read_authority(certs / "ca"), admin, tmp_path, timedelta(seconds=-1))
    if shows == "nothing":
        credentials = grpc.ssl_channel_credentials(ours.ca)
    else:
        theirs = read_certificates(tmp_path)
        credentials = grpc.ssl_channel_credentials(theirs.ca, theirs.key, theirs.chain)
    name = ("grpc.ssl_target_name_override", server_name(DOORS[door]))
    opened = grpc.secure_channel(up.address(door), credentials, [name])
    assert refused(opened) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("door", DOORS)
def test_no_service_is_taken_for_another(up: UpProcess, certs: Path, door: str) -> None:
    other = server_name(Role.ROUTER if DOORS[door] is Role.ENGINE else Role.ENGINE)
    opened = channel(up.address(door), certs / "admin", other)
    assert refused(opened) is grpc.StatusCode.UNAVAILABLE


@pytest.mark.parametrize("door", HOPS)
def test_not_a_byte_is_said_to_who_shows_none(up: UpProcess, certs: Path, door: str) -> None:
    ours = certs / "admin"
    assert not said_first(up.address(door), ours, shows=False)
    assert said_first(up.address(door), ours, shows=True)


def said_first(address: str, folder: Path, *, shows: bool) -> bytes:
    """What a server says of itself once the handshake is over, which begins HTTP/2."""
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    context.set_alpn_protocols(["h2"])
    context.check_hostname = False
    if shows:
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    host, _, port = address.rpartition(":")
    with socket.create_connection((host, int(port)), CALL_S) as connection:
        try:
            with context.wrap_socket(connection) as secured:
                return secured.recv(1024)
        except OSError:  # an SSLError is one
            return b""


@pytest.mark.parametrize("folder", ["engine-0", "codec", "client"])
def test_only_an_administrator_operates_the_router(up: UpProcess, certs: Path, folder: str) -> None:
    router = up.address("router")
    with channel(router, certs / folder, server_name(Role.ROUTER)) as opened:
        drain = opened.unary_unary(
            "/tokenway.router.v1.RouterService/DrainReplica",
            DrainReplicaRequest.SerializeToString,
            DrainReplicaResponse.FromString,
        )
        with pytest.raises(grpc.RpcError) as caught:
            drain(DrainReplicaRequest(address="x"), timeout=CALL_S)
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.usefixtures("here")
def test_commands_show_what_was_made_here(
    up: UpProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    router, engine = up.address("router"), up.address("engine")
    assert main(["router", "list", "--at", router, "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["status"] for one in listed["replicas"]] == ["REPLICA_STATUS_READY"] * 2
    for command in (
        ["router", "explain", "--prompt-ids", "1,2,3", "--at", router],
        ["router", "drain", engine, "--at", router],
        ["router", "undrain", engine, "--at", router],
        ["router", "weight", engine, "1", "--at", router],
        ["cache", "off", "--at", router],
        ["cache", "on", "--at", engine],
        ["cache", "flush", "--at", router],
        ["probe", router],
        ["probe", engine],
        ["probe", up.address("grpc")],
        ["certs", "show", ".tokenway/certs/router"],
    ):
        assert main(command) == 0, capsys.readouterr().err
    capsys.readouterr()
    assert main(["cache", "stats", "--at", router, "--json"]) == 0
    replicas = json.loads(capsys.readouterr().out)["replicas"]
    assert len(replicas) == 2
    assert not any("error" in one for one in replicas.values())


@pytest.mark.usefixtures("here")
def test_a_command_that_shows_nothing_is_told_to(
    up: UpProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["router", "list", "--at", up.address("router"), "--certificates", "none"]
    assert main(command) == 1
    assert "asks for a certificate" in capsys.readouterr().err


def test_what_is_asked_goes_through_all_hops(up: UpProcess, https_ca: Path) -> None:
    url = f"https://{up.address('http')}/v1"
    assert up.line("curl").startswith(f"curl -N {url}/chat/completions ")
    context = ssl.create_default_context(cafile=https_ca)
    with httpx.Client(
        base_url=url, headers=up.headers, timeout=PATIENCE_S, verify=context
    ) as client:
        model = client.get("/models").json()["data"][0]["id"]
        message = {"role": "user", "content": "hi"}
        body = {"model": model, "messages": [message], "max_tokens": 5, "ignore_eos": True}
        answer = client.post("/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["usage"]["completion_tokens"] == 5


@pytest.mark.usefixtures("here")
def test_a_codec_over_https_is_asked_by_commands(
    up: UpProcess, https_ca: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    door = ("--url", f"https://{up.address('http')}", "--ca", str(https_ca))
    assert main(["connect", "codex", *door]) == 0
    assert up.key_file.read_text() in capsys.readouterr().out
    assert main(["probe", f"{door[1]}/readyz"]) == 0


@pytest.mark.usefixtures("here")
def test_a_drill_asks_over_https_and_trusts_whom_it_is_told(
    up: UpProcess, https_ca: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["drill", "drain", "--seconds", "0", "--clients", "2"]
    of_up = [*command, "--log-dir", str(up.logs)]
    at = [*command, "--url", f"https://{up.address('http')}", "--router", up.address("router")]
    for where in (of_up, at):
        assert main([*where, "--ca", str(https_ca)]) == 0
        assert " exact, 0 wrong, 0 failed" in capsys.readouterr().out
        assert main(where) == 2
        assert "is not trusted" in capsys.readouterr().err


def test_only_their_owner_may_read_the_keys(certs: Path) -> None:
    keys = [*certs.rglob("*.key"), *certs.rglob("key.pem")]
    assert len(keys) == 7
    assert {key.stat().st_mode & 0o777 for key in keys} == {0o600}
