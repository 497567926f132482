"""HTTPS at the HTTP door: real handshakes, files that change, and files that cannot be used."""

from __future__ import annotations

import asyncio
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from services.codec.http_server import Door, listening
from services.codec.https import Https, showing
from services.codec.settings import CodecSettings, TlsSettings
from services.shared.config import BadConfig, load
from tests.certificates import Authority, Identity
from tests.codec_bed import BedMaker
from tests.waiting import PATIENCE_S


async def scheme(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.url.scheme)


APPLICATION = Starlette(routes=[Route("/", scheme)])


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def files(authority: Authority) -> Identity:
    return authority.issue("door")


@asynccontextmanager
async def door(https: Https) -> AsyncIterator[str]:
    listens = listening(APPLICATION, "127.0.0.1", 0, drain_s=1, door=Door(tls=https.context))
    async with listens as server:
        yield server.address


def trusting(authority: Authority, version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=authority.ca_file)
    if version is not None:
        # What the system forbids is asked for all the same: the server has to refuse it.
        context.set_ciphers("DEFAULT:@SECLEVEL=0")
        context.minimum_version = context.maximum_version = version
    return context


async def shown(address: str, context: ssl.SSLContext) -> bytes:
    """The certificate that a new connection gets to see."""
    host, _, port = address.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=context)
    peer = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    assert isinstance(peer, bytes)
    return peer


def pem(files: Identity) -> bytes:
    return ssl.PEM_cert_to_DER_cert(files.cert_file.read_text())


async def test_a_request_is_answered_over_tls_1_2_and_1_3_and_no_older(
    authority: Authority, files: Identity
) -> None:
    async with door(Https(files.cert_file, files.key_file)) as address:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            async with httpx.AsyncClient(verify=trusting(authority, version)) as client:
                answer = await client.get(f"https://{address}/")
            assert (answer.status_code, answer.text) == (200, "https")
        with pytest.warns(DeprecationWarning, match=r"TLSv1"):
            old = trusting(authority, ssl.TLSVersion.TLSv1_1)
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await shown(address, old)


async def test_plain_http_gets_no_answer_and_harms_nobody(
    authority: Authority, files: Identity
) -> None:
    async with door(Https(files.cert_file, files.key_file)) as address:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
        async with asyncio.timeout(PATIENCE_S):
            assert b"HTTP" not in await reader.read()
        writer.close()
        assert await shown(address, trusting(authority)) == pem(files)


async def test_another_certificate_is_shown_once_both_files_are_there(
    authority: Authority, files: Identity
) -> None:
    https = Https(files.cert_file, files.key_file)
    first, other = pem(files), authority.issue("other")
    context = trusting(authority)
    async with door(https) as address, httpx.AsyncClient(verify=context) as client:
        assert await shown(address, context) == first
        await client.get(f"https://{address}/")
        shutil.copy(other.key_file, files.key_file)
        for file in https.files:
            file.look()
        assert await shown(address, context) == first
        shutil.copy(other.cert_file, files.cert_file)
        for file in https.files:
            file.look()
        assert await shown(address, context) == pem(other) != first
        # A connection from before goes on.
        assert (await client.get(f"https://{address}/")).text == "https"


async def test_who_has_no_files_serves_plain_http() -> None:
    async with showing(TlsSettings()) as context:
        assert context is None


@pytest.mark.parametrize(
    ("certificate", "key", "fault"),
    [
        ("none.pem", "door.key", r"server\.tls\.certificate: .*none\.pem cannot be read: No such"),
        ("door.pem", "none.key", r"server\.tls\.key: .*none\.key cannot be read: No such"),
        ("door.key", "door.key", r"server\.tls\.certificate: .*door\.key holds no certificate"),
        ("door.pem", "door.pem", r"server\.tls\.key: .*door\.pem holds no key in PEM"),
        ("door.pem", "other.key", r"server\.tls\.key: .*other\.key is not the key of .*door\.pem"),
        (".", "door.key", r"server\.tls\.certificate: .* cannot be read: Is a directory"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    authority: Authority, tmp_path: Path, certificate: str, key: str, fault: str
) -> None:
    authority.issue("door")
    authority.issue("other")
    with pytest.raises(BadConfig, match=fault):
        Https(tmp_path / certificate, tmp_path / key)


@pytest.mark.parametrize(("one", "other"), [("certificate", "key"), ("key", "certificate")])
def test_one_file_without_the_other_is_refused(one: str, other: str) -> None:
    environ = {f"TOKENWAY_SERVER__TLS__{one.upper()}": "/x", "TOKENWAY_EXECUTOR__MODEL_PATH": "/m"}
    with pytest.raises(BadConfig, match=rf"server\.tls\.{other} must be set where {one} is"):
        load(CodecSettings, None, environ, {})


async def test_a_codec_answers_over_https(
    beds: BedMaker, authority: Authority, files: Identity
) -> None:
    tls = TlsSettings(certificate=files.cert_file, key=files.key_file)
    engine = beds.engine(beds.says("hello"))
    async with (
        beds.bed(engine, change_door=lambda door: replace(door, tls=tls)) as bed,
        httpx.AsyncClient(verify=trusting(authority)) as client,
    ):
        answer = await client.get(f"https://{bed.service.http}/v1/models")
        assert answer.status_code == 200
