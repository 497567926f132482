"""Logs: one JSON object on a line of stderr, with the trace of the request it is about."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from services.shared.settings import LogLevel
from services.shared.trace_context import TraceContext, current

_GRPC_SERVER = "grpc._cython.cygrpc"

_log = logging.getLogger(__name__)


def start(service: str, level: LogLevel, stream: TextIO | None = None) -> None:
    """Sends all logs of this process to `stream` (stderr when not given).

    A record may carry `extra={"fields": {...}}`, figures that stand as keys of the object, and
    `extra={"trace": context}` where the context is not that of the running span. Nobody logs
    prompts or answers.
    """
    logging.getLogger(_GRPC_SERVER).addFilter(_is_news)
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonFormatter(service))
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)


def _is_news(record: logging.LogRecord) -> bool:
    """Says no to gRPC's traceback of a message that could not be sent: its reader left."""
    error = record.exc_info[1] if record.exc_info else None
    if type(error).__name__ != "ExecuteBatchError":
        return True
    _log.debug("a reader left in the middle of a message")
    return False


class JsonFormatter(logging.Formatter):
    def __init__(self, service: str) -> None:
        super().__init__()
        self._service = service

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC)
        line: dict[str, Any] = {
            "ts": at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "service": self._service,
            "message": record.getMessage(),
        }
        trace: TraceContext | None = getattr(record, "trace", None) or current.get()
        if trace is not None:
            line |= {"trace_id": trace.trace_id, "span_id": trace.span_id}
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        fields: dict[str, Any] = getattr(record, "fields", {})
        return json.dumps(line | fields | line, default=str)  # ours come first and hold
