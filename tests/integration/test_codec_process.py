"""The codec as a process: it announces itself, drains on SIGTERM and refuses a bad start."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import httpx
import openai
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from tokenway.engine.v1 import engine_pb2 as pb

from services.codec.prompt import PromptEncoder
from services.shared.announce import announced
from services.shared.health import LIVENESS
from services.shared.model_folder import ModelFolder
from services.shared.stream.generation import Generation
from tests.scripted_engine import ScriptedEngine, serving_engine

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60
SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


@asynccontextmanager
async def process(config: Path) -> AsyncIterator[asyncio.subprocess.Process]:
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "services.codec", "--config", str(config)),
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield child
    finally:
        if child.returncode is None:
            child.kill()
        await child.communicate()


def config_at(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "codec.yaml"
    path.write_text(text)
    return path


@asynccontextmanager
async def codec_process(
    config: Path,
) -> AsyncIterator[tuple[asyncio.subprocess.Process, Mapping[str, str]]]:
    """A codec that can serve, and its doors."""
    async with process(config) as child:
        assert child.stdout is not None
        async with asyncio.timeout(PATIENCE_S):
            doors = announced((await child.stdout.readline()).decode())
        assert doors is not None
        async with httpx.AsyncClient(base_url=f"http://{doors['http']}") as client:
            await until_status(client, "/readyz", 200)
        yield child, doors


def settings(endpoint: str, model: ModelFolder) -> str:
    return (
        "server: {port: 0, grpc_port: 0}\nsecurity: {mtls: false}\n"
        f"inference_engine: {{endpoint: '{endpoint}', protocol: token-stream}}\n"
        "service: {limits: {settle_s: 3600}}\n"
        f"executor: {{model_path: '{model.path}'}}\n"
    )


def described(model: ModelFolder, encoder: PromptEncoder) -> pb.DescribeResponse:
    return pb.DescribeResponse(
        model="smol",
        tokenizer_fingerprint=model.tokenizer_fingerprint(),
        vocabulary_size=encoder.tokenizer.vocabulary_size,
        context_length=1024,
    )


async def until_status(client: httpx.AsyncClient, path: str, status: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await client.get(path)).status_code != status:  # noqa: ASYNC110 another process
            await asyncio.sleep(0.05)


async def first_refusal(client: httpx.AsyncClient, body: Mapping[str, Any]) -> httpx.Response:
    async with asyncio.timeout(PATIENCE_S):
        while (answer := await client.post("/v1/chat/completions", json=body)).is_success:
            pass
    return answer


async def grpc_status(address: str, service: str = "") -> int:
    async with grpc.aio.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        answer = await stub.Check(health_pb2.HealthCheckRequest(service=service))
    return int(answer.status)


async def collected(stream: AsyncIterator[Any], begun: asyncio.Event) -> str:
    text = ""
    async for chunk in stream:
        text += chunk.choices[0].delta.content or ""
        if text:
            begun.set()
    return text


async def test_a_codec_leaves_in_order(model_folder: ModelFolder, tmp_path: Path) -> None:
    """It settles for an hour unless it is told twice."""
    go_on, begun = asyncio.Event(), asyncio.Event()
    encoder = PromptEncoder(model_folder, cache_bytes=0)
    first, second = encoder.encode_text("one"), encoder.encode_text(" two")

    def script(generation: Generation) -> Sequence[Any]:
        return [first, *([] if generation.stopping.max_tokens == 1 else [go_on]), second]

    body: dict[str, Any] = {
        "model": model_folder.name,
        "messages": [{"role": "user", "content": "hi"}],
    }
    short = {**body, "max_tokens": 1}
    engine = ScriptedEngine(script=script, describes=described(model_folder, encoder))
    async with serving_engine(engine) as endpoint:
        config = config_at(tmp_path, settings(endpoint, model_folder))
        async with (
            codec_process(config) as (child, doors),
            httpx.AsyncClient(base_url=f"http://{doors['http']}") as client,
            openai.AsyncOpenAI(
                base_url=f"http://{doors['http']}/v1", api_key="k", max_retries=0
            ) as sdk,
        ):
            stream = await sdk.chat.completions.create(**body, stream=True)
            running = asyncio.ensure_future(collected(stream, begun))
            await begun.wait()
            assert await grpc_status(doors["grpc"]) == SERVING

            child.send_signal(signal.SIGTERM)
            await until_status(client, "/readyz", 503)
            assert (await client.get("/healthz")).status_code == 200
            assert await grpc_status(doors["grpc"]) == NOT_SERVING
            taken = await client.post("/v1/chat/completions", json=short)
            assert (taken.status_code, taken.headers["connection"]) == (200, "close")

            child.send_signal(signal.SIGTERM)
            refused = await first_refusal(client, short)
            assert (refused.status_code, refused.headers["connection"]) == (503, "close")
            assert refused.headers["retry-after"] in {"1", "2"}
            assert "stopping" in refused.json()["error"]["message"]
            assert (await client.get("/healthz")).status_code == 200
            assert await grpc_status(doors["grpc"], LIVENESS) == SERVING

            assert not running.done()
            go_on.set()
            assert await running == "one two"
            async with asyncio.timeout(PATIENCE_S):
                assert await child.wait() == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("executor: {model_path: /nowhere}\n", "/nowhere"),
        ("executor: {model_path: x}\nserver: {prot: 1}\n", "server.prot is unknown"),
        ("executor: {model_path: x}\ninference_engine: {protocol: http}\n", "token-stream"),
        ("server: {port: 70000}\nexecutor: {model_path: x}\n", "server.port must be between"),
    ],
)
async def test_bad_start_says_what_to_change(tmp_path: Path, text: str, said: str) -> None:
    async with process(config_at(tmp_path, text)) as child:
        async with asyncio.timeout(PATIENCE_S):
            _, stderr = await child.communicate()
    assert child.returncode not in (0, None)
    assert said in stderr.decode().splitlines()[-1]
