"""How a caller of Chat Completions wants its answer."""

from __future__ import annotations

from services.codec.protocols.fields import Fields, fields, integer
from services.codec.request import Delivery
from services.shared.errors import InvalidRequest

MAX_TOP_LOGPROBS = 20


def delivery_of(chat: Fields) -> Delivery:
    return Delivery(
        stream=chat.flag("stream"),
        show_control_tokens=not chat.flag("skip_special_tokens", default=True),
        usage_at_end=usage_at_end(chat),
        continuous_usage=continuous_usage(chat),
        top_logprobs=_top_logprobs(chat),
        token_ids=chat.flag("return_token_ids"),
    )


def usage_at_end(body: Fields) -> bool:
    """Options of a stream that is none are ignored: proxies send them always."""
    return _stream_options(body).flag("include_usage")


def continuous_usage(body: Fields) -> bool:
    options = _stream_options(body)
    return options.flag("continuous_usage_stats") and options.flag("include_usage")


def _stream_options(body: Fields) -> Fields:
    return body.optional("stream_options", fields) or Fields({}, "stream_options")


def _top_logprobs(chat: Fields) -> int | None:
    top = chat.optional("top_logprobs", integer(0, MAX_TOP_LOGPROBS))
    if chat.flag("logprobs"):
        return top or 0
    if top:
        raise InvalidRequest("top_logprobs needs logprobs to be true", field="top_logprobs")
    return None
