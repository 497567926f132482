"""The whole codec: its link to the engine and its two doors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from services.codec.codec import Codec, Limits
from services.codec.engine_link import EngineLink, Identity, linked
from services.codec.http_routes import HttpTerms, app
from services.codec.http_server import listening
from services.codec.prompt import PromptEncoder
from services.codec.protocols.reading import Reading
from services.codec.protocols.seal import Seal
from services.codec.readiness import Ready, watched
from services.codec.rpc import CodecServicer, register
from services.codec.served_model import ServedModel
from services.codec.settings import CodecSettings
from services.shared.model_folder import CONFIG, ModelFolder
from services.shared.server import serving

LAST_WORDS_S = 1.0
"""How long answers that did not end in time have to tell so."""

RPC_SERVICE = "tokenway.codec.v1.CodecService"


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """A codec that listens.

    Args:
        http: address of the HTTP door.
        grpc: address of the gRPC door.
        ready: whether it can serve; told to drain before the block ends.
    """

    http: str
    grpc: str
    ready: Ready


@asynccontextmanager
async def serving_codec(
    settings: CodecSettings, folder: ModelFolder, encoder: PromptEncoder
) -> AsyncIterator[Service]:
    """Serves inside the block; at its end running requests have the drain timeout to end."""
    async with linked(settings.inference_engine.endpoint, _identity(folder, encoder)) as link:
        codec = _codec(settings, folder, encoder, link)
        ready = Ready(codec, settings.health.initial_delay_seconds)
        async with _doors(settings, codec, ready) as service:
            yield service


@asynccontextmanager
async def _doors(settings: CodecSettings, codec: Codec, ready: Ready) -> AsyncIterator[Service]:
    server, drain_s = settings.server, settings.service.limits.drain_timeout_s
    grace_s = drain_s + LAST_WORDS_S
    max_body_bytes = settings.service.limits.max_body_bytes
    terms = HttpTerms(
        health=settings.health,
        max_body_bytes=max_body_bytes,
        allowed_origins=server.allowed_origins,
    )
    application = app(codec, ready, terms)
    async with (
        listening(application, server.host, server.port, drain_s=grace_s) as http,
        serving(
            f"{server.host}:{server.grpc_port}",
            partial(register, CodecServicer(codec, max_body_bytes)),
            [RPC_SERVICE],
            grace_s=grace_s,
        ) as door,
        watched(ready, door.health),
    ):
        yield Service(http=http.address, grpc=door.address, ready=ready)
        # Both doors drain at the same time.
        ready.is_draining = True
        http.drain()
        asyncio.get_running_loop().call_later(drain_s, codec.give_up)


def _identity(folder: ModelFolder, encoder: PromptEncoder) -> Identity:
    """The vocabulary is that of the weights, which may be padded beyond the tokenizer's."""
    vocabulary_size = folder.json(CONFIG).get("vocab_size", encoder.tokenizer.vocabulary_size)
    return Identity(
        tokenizer_fingerprint=folder.tokenizer_fingerprint(), vocabulary_size=vocabulary_size
    )


def _codec(
    settings: CodecSettings, folder: ModelFolder, encoder: PromptEncoder, link: EngineLink
) -> Codec:
    limits = settings.service.limits
    return Codec(
        encoder,
        link,
        ServedModel(
            names=_names(settings, folder),
            created=int(folder.path.stat().st_mtime),
        ),
        Limits(
            concurrency=limits.max_concurrency,
            choices=limits.max_choices,
            timeout_s=limits.request_timeout_ms / 1000,
            heartbeat_s=settings.service.heartbeat_seconds,
        ),
        _reading(settings, folder, encoder),
    )


def _reading(settings: CodecSettings, folder: ModelFolder, encoder: PromptEncoder) -> Reading:
    key = settings.service.seal_key
    return Reading(
        vocabulary_size=encoder.tokenizer.vocabulary_size,
        model=_names(settings, folder)[0],
        images=settings.service.images,
        seal=Seal() if key is None else Seal(key.encode()),
    )


def _names(settings: CodecSettings, folder: ModelFolder) -> tuple[str, ...]:
    return settings.service.model_names or (folder.name,)
