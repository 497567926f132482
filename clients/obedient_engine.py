"""An engine that does what the prompt says in a fixed form, for round trips of tools.

It is started as the engine's process is. `Call NAME (ARGUMENT: VALUE)` in a prompt that defines the
tool makes it call it; after the result it says it in capitals, which only an answer can hold.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
from collections.abc import Sequence
from pathlib import Path

import yaml
from tokenway.engine.v1 import engine_pb2 as engine_pb

from services.codec.prompt import PromptEncoder
from services.shared.announce import announce
from services.shared.model_folder import ModelFolder
from services.shared.stream.generation import Generation
from tests.scripted_engine import ScriptedEngine, Step, serving_engine

CONTEXT_LENGTH = 200_000
_ORDER = re.compile(r"Call (\w+) \((\w+): ([^()]*)\)")
_RESULT = re.compile(r"<tool_response>(.*?)</tool_response>", re.DOTALL)


def said(prompt: str) -> str:
    """The answer to a prompt in the form of SmolLM2."""
    orders = list(_ORDER.finditer(prompt))
    if not orders:
        return "Hello, I am here."
    name, argument, value = orders[-1].groups()
    if results := _RESULT.findall(prompt, orders[-1].end()):
        return f"It says {results[-1].upper()}"
    if f'"name": "{name}"' not in prompt[: orders[0].start()]:
        return "A title"
    call = {"name": name, "arguments": {argument: value}}
    return f"<tool_call>[{json.dumps(call)}]</tool_call>"


async def serve(folder: ModelFolder) -> None:
    """Until SIGTERM."""
    encoder = PromptEncoder(folder, cache_bytes=0)

    def script(generation: Generation) -> Sequence[Step]:
        spelled = b"".join(map(encoder.tokenizer.token_bytes, generation.prompt_ids))
        return [encoder.encode_text(said(spelled.decode(errors="replace")))]

    described = engine_pb.DescribeResponse(
        model=folder.name,
        tokenizer_fingerprint=folder.tokenizer_fingerprint(),
        vocabulary_size=encoder.tokenizer.vocabulary_size,
        context_length=CONTEXT_LENGTH,
    )
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    async with serving_engine(ScriptedEngine(script=script, describes=described)) as address:
        announce({"grpc": address})
        await stop.wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--config", type=Path, required=True)
    settings = yaml.safe_load(parser.parse_args().config.read_text())
    asyncio.run(serve(ModelFolder(Path(settings["executor"]["model_path"]))))


if __name__ == "__main__":
    main()
