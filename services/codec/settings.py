"""Settings of the codec."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from services.codec.connection_settings import ConnectionSettings
from services.codec.filtering.settings import ContentFilterSettings
from services.codec.output.families import FAMILIES
from services.codec.protocols.reading import Images
from services.shared.access.settings import SecuritySettings
from services.shared.bounds import at_least, within
from services.shared.byte_size import ByteSize
from services.shared.request_log.settings import RequestLogSettings
from services.shared.settings import HealthSettings, MetricsSettings, TelemetrySettings

ALIASES = {"MODEL_PATH": "executor.model_path", "MAX_CONCURRENT": "service.limits.max_concurrency"}


class EngineProtocol(StrEnum):
    TOKEN_STREAM = "token-stream"  # noqa: S105 no password


@dataclass(frozen=True, kw_only=True, slots=True)
class TlsSettings:
    """What the HTTP door shows as HTTPS, in PEM; changes are followed. Without it, plain HTTP.

    `certificate` holds the chain, its own certificate first.
    """

    certificate: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        if self.certificate is not None and self.key is None:
            raise ValueError("key must be set where certificate is")
        if self.key is not None and self.certificate is None:
            raise ValueError("certificate must be set where key is")


@dataclass(frozen=True, kw_only=True, slots=True)
class DoorSettings:
    """Where HTTP and gRPC listen; port 0 takes a free one.

    Pages of `allowed_origins` may ask from a browser; `*` stands for all of them.
    """

    port: int = 8080
    grpc_port: int = 8081
    host: str = "127.0.0.1"
    allowed_origins: tuple[str, ...] = ()
    tls: TlsSettings = field(default_factory=TlsSettings)
    connections: ConnectionSettings = field(default_factory=ConnectionSettings)

    def __post_init__(self) -> None:
        within("port", self.port, 0, 65535)
        within("grpc_port", self.grpc_port, 0, 65535)
        if not self.host:
            raise ValueError("host must not be empty, got ''")


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSettings:
    """The token stream service that answers: a router or an engine."""

    endpoint: str = "127.0.0.1:9000"
    protocol: EngineProtocol = EngineProtocol.TOKEN_STREAM


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorSettings:
    """The model folder, for its tokenizer and its chat template."""

    model_path: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitSettings:
    """What one codec takes at a time, and for how long.

    A request may ask for `max_choices` answers to one prompt. Told to stop, the codec takes what
    comes for `settle_s`, then waits `drain_timeout_s` for what runs.
    """

    max_concurrency: int = 1024
    max_choices: int = 8
    request_timeout_ms: int = 600_000
    max_body_bytes: ByteSize = field(default_factory=lambda: ByteSize(32_000_000))
    settle_s: float = 5.0
    drain_timeout_s: float = 30.0

    def __post_init__(self) -> None:
        at_least("max_concurrency", self.max_concurrency, 1)
        within("max_choices", self.max_choices, 1, 128)
        within("request_timeout_ms", self.request_timeout_ms, 1, 2**32 - 1)
        within("max_body_bytes", self.max_body_bytes, 1, 2**31 - 1)
        within("settle_s", self.settle_s, 0, 3600)
        within("drain_timeout_s", self.drain_timeout_s, 0, 3600)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceSettings:
    """How the codec serves.

    Args:
        model_names: what callers may call the model; the first is its name. None: its folder's.
        piece_cache: memory for the token IDs of text that was encoded before.
        output_family: how the model writes reasoning and tool calls; None: as its template and its
            vocabulary show.
        heartbeat_seconds: silence on a stream after which it shows that it lives.
        images: what becomes of images, which models of text cannot see.
        seal_key: authenticates reasoning that callers of Responses keep. Codecs that share it read
            each other's; without one each codec makes its own when it starts.
    """

    model_names: tuple[str, ...] = ()
    limits: LimitSettings = field(default_factory=LimitSettings)
    piece_cache: ByteSize = field(default_factory=lambda: ByteSize(64 * 2**20))
    output_family: str | None = None
    heartbeat_seconds: float = 10.0
    images: Images = Images.REJECT
    seal_key: str | None = field(default=None, repr=False)
    content_filter: ContentFilterSettings = field(default_factory=ContentFilterSettings)

    def __post_init__(self) -> None:
        at_least("piece_cache", self.piece_cache, 0)
        if self.output_family is not None and self.output_family not in FAMILIES:
            names = ", ".join(FAMILIES)
            raise ValueError(f"output_family must be one of {names}, got {self.output_family!r}")
        within("heartbeat_seconds", self.heartbeat_seconds, 0.05, 3600)


@dataclass(frozen=True, kw_only=True, slots=True)
class CodecSettings:
    executor: ExecutorSettings
    server: DoorSettings = field(default_factory=DoorSettings)
    inference_engine: EngineSettings = field(default_factory=EngineSettings)
    service: ServiceSettings = field(default_factory=ServiceSettings)
    security: SecuritySettings = field(default_factory=SecuritySettings)
    request_log: RequestLogSettings = field(default_factory=RequestLogSettings)
    health: HealthSettings = field(default_factory=HealthSettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
