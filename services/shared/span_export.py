"""How spans leave the process: sampled by trace, sent by OTLP over gRPC in the background."""

from __future__ import annotations

import logging

import grpc
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased

from services.shared.config import BadConfig
from services.shared.settings import TelemetrySettings
from services.shared.span_queue import SpanQueue

EXPORT_S = 5.0
"""How long a collector has to take a batch."""

_OTLP_LOG = "opentelemetry.exporter.otlp.proto.grpc.exporter"


class ExportedSpans(TracerProvider):
    """The spans of this process; `queue` is where they wait."""

    def __init__(self, service: str, queue: SpanQueue, sample_ratio: float) -> None:
        super().__init__(
            resource=Resource.create({SERVICE_NAME: f"tokenway-{service}"}),
            sampler=ParentBased(TraceIdRatioBased(sample_ratio)),
        )
        self.queue = queue
        self.add_span_processor(queue)
        self._tracer = super().get_tracer("tokenway")

    def get_tracer(self, *_: object, **__: object) -> trace.Tracer:
        """The same for everybody: the SDK takes almost as long to find one as for a span."""
        return self._tracer


def exporting(service: str, endpoint: str, settings: TelemetrySettings) -> ExportedSpans:
    """Raises BadConfig where the collector's certificates cannot be read."""
    # It would tell of each batch; the queue tells of the first.
    logging.getLogger(_OTLP_LOG).setLevel(logging.CRITICAL)
    is_secure = endpoint.startswith("https://")
    exporter = OTLPSpanExporter(
        endpoint=endpoint,
        insecure=not is_secure,
        credentials=_credentials(settings) if is_secure else None,
        headers=tuple(settings.headers),
        timeout=EXPORT_S,
    )
    return ExportedSpans(service, SpanQueue(exporter), settings.sample_ratio)


def dropped_spans() -> int:
    """Spans of this process that no collector got."""
    provider = trace.get_tracer_provider()
    return provider.queue.dropped if isinstance(provider, ExportedSpans) else 0


def _credentials(settings: TelemetrySettings) -> grpc.ChannelCredentials:
    if settings.otlp_ca_file is None:
        return grpc.ssl_channel_credentials()
    try:
        return grpc.ssl_channel_credentials(settings.otlp_ca_file.read_bytes())
    except OSError as error:
        raise BadConfig(
            f"telemetry.otlp_ca_file cannot be read: {settings.otlp_ca_file}: {error.strerror}"
        ) from error
