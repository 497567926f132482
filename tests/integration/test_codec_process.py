"""The codec as a process: it announces itself, drains on SIGTERM and refuses a bad start."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from tokenway.engine.v1 import engine_pb2 as pb

from services.codec.prompt import PromptEncoder
from services.shared.announce import announced
from services.shared.model_folder import ModelFolder
from tests.scripted_engine import ScriptedEngine, serving_engine

ROOT = Path(__file__).parents[2]
PATIENCE_S = 60


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


async def ready(client: httpx.AsyncClient) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await client.get("/readyz")).status_code != 200:  # noqa: ASYNC110 another process
            await asyncio.sleep(0.05)


async def test_running_stream_ends_whole_after_sigterm(
    model_folder: ModelFolder, tmp_path: Path
) -> None:
    go_on = asyncio.Event()
    encoder = PromptEncoder(model_folder, cache_bytes=0)
    first, second = encoder.encode_text("one"), encoder.encode_text(" two")

    def script(_: Any) -> Sequence[Any]:
        return [first, go_on, second]

    describes = pb.DescribeResponse(
        model="smol",
        tokenizer_fingerprint=model_folder.tokenizer_fingerprint(),
        vocabulary_size=encoder.tokenizer.vocabulary_size,
        context_length=1024,
    )
    async with serving_engine(ScriptedEngine(script=script, describes=describes)) as endpoint:
        config = config_at(
            tmp_path,
            f"server: {{port: 0, grpc_port: 0}}\n"
            f"inference_engine: {{endpoint: '{endpoint}', protocol: token-stream}}\n"
            f"executor: {{model_path: '{model_folder.path}'}}\n",
        )
        async with process(config) as child:
            assert child.stdout is not None
            async with asyncio.timeout(PATIENCE_S):
                doors = announced((await child.stdout.readline()).decode())
            assert doors is not None
            url = f"http://{doors['http']}"
            async with httpx.AsyncClient(base_url=url) as client:
                await ready(client)
            async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as sdk:
                stream = await sdk.chat.completions.create(
                    model=model_folder.name,
                    messages=[{"role": "user", "content": "hi"}],
                    stream=True,
                )
                text = ""
                async for chunk in stream:
                    text += chunk.choices[0].delta.content or ""
                    if text == "one" and not go_on.is_set():
                        child.send_signal(signal.SIGTERM)
                        go_on.set()
            assert text == "one two"
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
