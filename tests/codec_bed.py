"""A real codec on loopback before a scripted engine."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace

import anthropic
import openai
from tokenway.engine.v1 import engine_pb2 as engine_pb

from services.codec.prompt import PromptEncoder
from services.codec.service import Service, serving_codec
from services.codec.settings import (
    CodecSettings,
    DoorSettings,
    EngineSettings,
    ExecutorSettings,
    LimitSettings,
    ServiceSettings,
)
from services.shared.access.settings import SecuritySettings
from services.shared.model_folder import ModelFolder
from services.shared.stream.generation import Generation
from tests.scripted_engine import Script, ScriptedEngine, Step, serving_engine
from tests.waiting import until

CONTEXT_LENGTH = 4096
MODEL = "org/smol"


@dataclass(frozen=True, kw_only=True)
class Bed:
    """What a test speaks to."""

    engine: ScriptedEngine
    service: Service
    openai: openai.AsyncOpenAI
    anthropic: anthropic.AsyncAnthropic

    @property
    def url(self) -> str:
        return f"http://{self.service.http}"


@dataclass(frozen=True, kw_only=True)
class BedMaker:
    """Makes beds over one loaded tokenizer."""

    folder: ModelFolder
    encoder: PromptEncoder

    def says(self, text: str, group: int = 1) -> Script:
        """The text's tokens, `group` at a time."""
        ids = self.encoder.encode_text(text)
        steps: list[Step] = [ids[at : at + group] for at in range(0, len(ids), group)]

        def script(_: Generation) -> Sequence[Step]:
            return steps

        return script

    def described(self) -> engine_pb.DescribeResponse:
        return engine_pb.DescribeResponse(
            model="smol",
            tokenizer_fingerprint=self.folder.tokenizer_fingerprint(),
            vocabulary_size=self.encoder.tokenizer.vocabulary_size,
            context_length=CONTEXT_LENGTH,
        )

    def engine(self, script: Script) -> ScriptedEngine:
        return ScriptedEngine(script=script, describes=self.described())

    @asynccontextmanager
    async def bed(
        self,
        engine: ScriptedEngine,
        change: Callable[[ServiceSettings], ServiceSettings] = lambda settings: settings,
        change_door: Callable[[DoorSettings], DoorSettings] = lambda settings: settings,
        security: SecuritySettings | None = None,
    ) -> AsyncIterator[Bed]:
        """A codec that is ready, with both SDKs before it."""
        async with (
            serving_engine(engine) as endpoint,
            self.codec(self.settings(endpoint, change, security), change_door) as service,
        ):
            await until(lambda: service.ready.fault is None)
            url = f"http://{service.http}"
            async with (
                openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="k", max_retries=0) as by_openai,
                anthropic.AsyncAnthropic(base_url=url, api_key="k", max_retries=0) as by_anthropic,
            ):
                yield Bed(engine=engine, service=service, openai=by_openai, anthropic=by_anthropic)

    def codec(
        self, settings: CodecSettings, change_door: Callable[[DoorSettings], DoorSettings]
    ) -> AbstractAsyncContextManager[Service]:
        changed = replace(settings, server=change_door(settings.server))
        return serving_codec(changed, self.folder, self.encoder)

    def settings(
        self,
        endpoint: str,
        change: Callable[[ServiceSettings], ServiceSettings] = lambda settings: settings,
        security: SecuritySettings | None = None,
    ) -> CodecSettings:
        service = ServiceSettings(
            model_names=(MODEL, "claude-small"), limits=LimitSettings(drain_timeout_s=1)
        )
        return CodecSettings(
            executor=ExecutorSettings(model_path=self.folder.path),
            server=DoorSettings(port=0, grpc_port=0),
            inference_engine=EngineSettings(endpoint=endpoint),
            service=change(service),
            security=replace(security or SecuritySettings(), mtls=False),
        )
