"""What requests came to, in plain numbers. Names and bounds are those of OpenTelemetry."""

from __future__ import annotations

import re
from enum import StrEnum

from services.codec.protocols.chat_completions.protocol import CHAT_COMPLETIONS
from services.codec.protocols.completions.protocol import COMPLETIONS
from services.codec.protocols.messages.protocol import MESSAGES
from services.codec.protocols.responses.protocol import RESPONSES
from services.codec.request_record import Account, Outcome, RequestRecord
from services.shared.errors import WIRE, Internal, ServiceError
from services.shared.histogram import WAIT_S, Histogram
from services.shared.stream.events import CachedTokens

DURATION_S = (
    *(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64),
    *(1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92),
)
FIRST_TOKEN_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1),
    *(0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
)
OUTPUT_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
TOKENS = tuple(4**power for power in range(14))

OTHER = "other"
"""What is no answer of the model, or was refused unread."""

OPERATIONS = (
    *(protocol.name for protocol in (CHAT_COMPLETIONS, COMPLETIONS, MESSAGES, RESPONSES)),
    OTHER,
)
NO_ERROR = ""


class Door(StrEnum):
    HTTP = "http"
    GRPC = "grpc"


class Operation(StrEnum):
    """What is asked of a model, in OpenTelemetry's words."""

    CHAT = "chat"
    TEXT_COMPLETION = "text_completion"


class TokenType(StrEnum):
    INPUT = "input"
    OUTPUT = "output"


def _error_type(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


ERROR_TYPES = {kind.__name__: _error_type(kind.__name__) for kind in WIRE}
"""By the name of the error's class."""


class RequestFigures:
    """Counts since the start; `hear` is told of each request at its end."""

    def __init__(self) -> None:
        self.ended = {
            (door, operation, outcome): 0
            for door in Door
            for operation in OPERATIONS
            for outcome in Outcome
        }
        self.errors = dict.fromkeys(ERROR_TYPES.values(), 0)
        self.sent_away = 0
        self.durations = {
            (operation, error_type): Histogram(DURATION_S)
            for operation in Operation
            for error_type in (NO_ERROR, *ERROR_TYPES.values())
        }
        self.first_tokens = {operation: Histogram(FIRST_TOKEN_S) for operation in Operation}
        self.output_tokens = {operation: Histogram(OUTPUT_TOKEN_S) for operation in Operation}
        self.usage = {
            (operation, token_type): Histogram(TOKENS)
            for operation in Operation
            for token_type in TokenType
        }
        self.encoding = Histogram(WAIT_S)
        self.prompt_tokens = self.completion_tokens = 0
        self.cached = CachedTokens()

    def hear(self, record: RequestRecord) -> None:
        account = record.account
        operation = account.operation if account.operation in OPERATIONS else OTHER
        self.ended[Door(record.door), operation, record.outcome] += 1
        error_type = NO_ERROR if record.error is None else _known(record.error)
        if error_type:
            self.errors[error_type] += 1
        if account.encoded_s is not None:
            self.encoding.note(account.encoded_s)
        if operation != OTHER:
            asked = _asked(operation)
            self.durations[asked, error_type].note(record.duration_s)
            self._count(asked, account)
            self._time(asked, record)

    def send_away(self, error: ServiceError) -> None:
        """A request came too early and was refused unread."""
        self.sent_away += 1
        self.errors[_known(type(error).__name__)] += 1

    def _count(self, asked: Operation, account: Account) -> None:
        if not account.prompt_tokens:
            return
        self.usage[asked, TokenType.INPUT].note(account.prompt_tokens)
        self.usage[asked, TokenType.OUTPUT].note(account.completion_tokens)
        self.prompt_tokens += account.prompt_tokens
        self.completion_tokens += account.completion_tokens
        self.cached += account.cached

    def _time(self, asked: Operation, record: RequestRecord) -> None:
        """Choices come at the same time, so their tokens are not one after the other."""
        account = record.account
        if account.first_s is None:
            return
        self.first_tokens[asked].note(account.first_s)
        later = account.completion_tokens - account.choices
        if later > 0 and record.outcome is Outcome.FINISHED:
            time_s = (record.duration_s - account.first_s) * account.choices / later
            self.output_tokens[asked].note(time_s)


def _asked(operation: str) -> Operation:
    is_text = operation == COMPLETIONS.name
    return Operation.TEXT_COMPLETION if is_text else Operation.CHAT


def _known(error: str) -> str:
    return ERROR_TYPES.get(error, ERROR_TYPES[Internal.__name__])
