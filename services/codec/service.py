"""The whole codec: its link to the engine and its two doors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

from services.codec.codec import Codec, Limits
from services.codec.doors import LAST_WORDS_S, http_door, rpc_door
from services.codec.engine_link import EngineLink, Identity, linked
from services.codec.filtering.screening import Screening, screening
from services.codec.http_server import HttpServer
from services.codec.listeners import Listeners
from services.codec.metrics import CodecMetrics, Sources
from services.codec.open_requests import OpenRequests
from services.codec.prompt import PromptEncoder
from services.codec.protocols.reading import Reading
from services.codec.protocols.seal import Seal
from services.codec.readiness import Ready, watched
from services.codec.reception import Reception
from services.codec.repeats import Repeats
from services.codec.request_rows import row_of
from services.codec.served_model import ServedModel
from services.codec.settings import CodecSettings
from services.shared.access.opening import guarding
from services.shared.access.tenant_quotas import TenantQuotas
from services.shared.health import Health
from services.shared.mesh.mesh import Mesh
from services.shared.mesh.opening import meshing
from services.shared.model_folder import CONFIG, ModelFolder
from services.shared.process_metrics import Process, metrics_served
from services.shared.request_log.opening import logging_requests
from services.shared.request_log.request_log import RequestLog
from services.shared.tls.identity import STREAM_NAME, Role


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """A codec that listens.

    Args:
        http: address of the HTTP door.
        grpc: address of the gRPC door.
        ready: whether it can serve.
        health: the same for the gRPC door.
        requests: those of both doors.
        give_up: ends all answers with an error.
        metrics: where metrics are served, by its name among the doors; none without a port.
        listeners: hear of each request.
        request_log: keeps a row of each; None where no database is named.
    """

    http: str
    grpc: str
    ready: Ready
    health: Health
    requests: OpenRequests
    give_up: Callable[[], None]
    metrics: dict[str, str]
    listeners: Listeners
    request_log: RequestLog | None

    def leave(self) -> None:
        """Is not ready any more and asks callers to go elsewhere, but takes who comes."""
        self.requests.are_leaving = True

    async def drain(self, timeout_s: float | None) -> None:
        """Refuses new requests; what still runs after `timeout_s` seconds ends with an error."""
        self.leave()
        self.requests.close()
        if not await self.requests.idle(timeout_s):
            self.give_up()
            await self.requests.idle(LAST_WORDS_S)


@asynccontextmanager
async def serving_codec(
    settings: CodecSettings, folder: ModelFolder, encoder: PromptEncoder
) -> AsyncIterator[Service]:
    """Serves inside the block; drain it before its end, which breaks off what runs.

    Raises BadConfig when who may ask is not to be known, or would be anybody beyond this machine.
    """
    async with (
        logging_requests(settings.request_log) as request_log,
        meshing(settings.security, Role.CODEC, settings.server.host) as mesh,
        guarding(settings.security, settings.server.host, mesh.denials) as access,
        linked(
            mesh.way(STREAM_NAME), settings.inference_engine.endpoint, _identity(folder, encoder)
        ) as link,
        screening(settings.service.content_filter) as screen,
    ):
        codec = _codec(settings, folder, encoder, link, (access.quotas, screen))
        repeats = Repeats(asyncio.get_running_loop())
        draw = Random().random  # noqa: S311 no secret
        reception = Reception(codec.refusal, repeats, draw, OpenRequests(), access)
        if request_log is not None:
            reception.listeners.append(lambda record: request_log.add(row_of(record)))
        try:
            async with _doors(settings, codec, reception, mesh, request_log) as service:
                yield service
        finally:
            repeats.close()


@asynccontextmanager
async def _doors(
    settings: CodecSettings,
    codec: Codec,
    reception: Reception,
    mesh: Mesh,
    request_log: RequestLog | None,
) -> AsyncIterator[Service]:
    requests = reception.open_requests
    ready = Ready(codec, requests, settings.health.initial_delay_seconds)
    process = Process(service="codec", mesh=mesh)
    async with (
        http_door(settings, codec, reception, ready) as http,
        rpc_door(settings, codec, reception, mesh, process.traffic) as door,
        metrics_served(
            settings.server.host,
            settings.metrics.port,
            process,
            CodecMetrics(_sources(codec, ready, reception, http, request_log)),
        ) as metrics,
        watched(ready, door.health),
    ):
        yield Service(
            http=http.address,
            grpc=door.address,
            ready=ready,
            health=door.health,
            requests=requests,
            give_up=codec.give_up,
            metrics=metrics,
            listeners=reception.listeners,
            request_log=request_log,
        )
        requests.close()
        codec.give_up()


def _sources(
    codec: Codec,
    ready: Ready,
    reception: Reception,
    http: HttpServer,
    request_log: RequestLog | None,
) -> Sources:
    return Sources(
        listeners=reception.listeners,
        connections=lambda: http.connections,
        is_router_up=lambda: codec.fault is None,
        is_ready=lambda: ready.fault is None,
        quota_store_up=lambda: reception.quotas.is_shared,
        quota_questions=lambda: reception.quotas.questions,
        logged_rows=dict if request_log is None else lambda: _rows(request_log),
    )


def _rows(request_log: RequestLog) -> dict[str, int]:
    return {"written": request_log.written, "dropped": sum(request_log.dropped.values())}


def _identity(folder: ModelFolder, encoder: PromptEncoder) -> Identity:
    """The vocabulary is that of the weights, which may be padded beyond the tokenizer's."""
    vocabulary_size = folder.json(CONFIG).get("vocab_size", encoder.tokenizer.vocabulary_size)
    return Identity(
        tokenizer_fingerprint=folder.tokenizer_fingerprint(), vocabulary_size=vocabulary_size
    )


def _codec(
    settings: CodecSettings,
    folder: ModelFolder,
    encoder: PromptEncoder,
    link: EngineLink,
    bounds: tuple[TenantQuotas, Screening | None],
) -> Codec:
    limits, (quotas, screen) = settings.service.limits, bounds
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
            quotas=quotas,
            screening=screen,
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
