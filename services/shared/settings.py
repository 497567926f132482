"""Settings that more than one service has."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from services.shared.bounds import at_least, within

_HEADER = re.compile(r"[a-z0-9_.-]{1,64}=[ -~]{0,4096}")


class LogLevel(StrEnum):
    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerSettings:
    """Where a server listens; port 0 takes a free one."""

    port: int
    host: str = "127.0.0.1"

    def __post_init__(self) -> None:
        within("port", self.port, 0, 65535)
        if not self.host:
            raise ValueError("host must not be empty, got ''")

    @property
    def address(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, kw_only=True, slots=True)
class HealthSettings:
    """Where an HTTP service tells that it lives and that it can serve.

    `initial_delay_seconds` is how long after the start it is not asked to be ready.
    """

    liveness_path: str = "/healthz"
    readiness_path: str = "/readyz"
    initial_delay_seconds: float = 0.0

    def __post_init__(self) -> None:
        for key, path in (
            ("liveness_path", self.liveness_path),
            ("readiness_path", self.readiness_path),
        ):
            if not path.startswith("/"):
                raise ValueError(f"{key} must begin with /, got {path!r}")
        at_least("initial_delay_seconds", self.initial_delay_seconds, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class MetricsSettings:
    """Where metrics are served over HTTP, at the host of the server; without a port nowhere."""

    port: int | None = None

    def __post_init__(self) -> None:
        within("port", self.port, 0, 65535)


@dataclass(frozen=True, kw_only=True, slots=True)
class TelemetrySettings:
    """Logs, and where spans go; without an endpoint no span leaves the process.

    Args:
        otlp_ca_file: certificates that an endpoint of `https` is checked against.
        otlp_headers: `name=value`, sent with all spans; values may be secret.
        sample_ratio: of the traces that begin here; those that a caller began are as it says.
    """

    otlp_endpoint: str | None = None
    otlp_ca_file: Path | None = None
    otlp_headers: tuple[str, ...] = ()
    sample_ratio: float = 1.0
    log_level: LogLevel = LogLevel.INFO

    def __post_init__(self) -> None:
        within("sample_ratio", self.sample_ratio, 0, 1)
        for at, header in enumerate(self.otlp_headers):
            if not _HEADER.fullmatch(header):
                raise ValueError(f"otlp_headers[{at}] must be name=value, the name in lower case")

    @property
    def headers(self) -> list[tuple[str, str]]:
        """Name and value of each."""
        pairs = [header.partition("=") for header in self.otlp_headers]
        return [(name, value) for name, _, value in pairs]
