"""Where the time of a request went, as its caller may ask to be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from services.codec.request_record import Account
from services.shared.stream.events import CachedTokens, Timeline

HEADER = "x-tokenway-timeline"
"""Of HTTP, and a key of gRPC's metadata: with the value 1 it asks for the timeline."""

KEY = "tokenway"
"""Where it stands in an answer; no protocol has such a key."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ToldTimeline:
    """Times are whole microseconds from the arrival of the request.

    Args:
        request_id: as in the headers, and in all logs.
        trace_id: 32 hexadecimal digits.
        routed: why the first generation went where it went.
        encoded_us: until the prompts were token IDs.
        first_us: until the first token could be told.
        total_us: until all was.
        cached: prompt tokens that needed no computing, by tier.
        choices: of the generations that ended by themselves, by choice; a stop string ends early.
    """

    request_id: str
    trace_id: str
    routed: str
    encoded_us: int
    first_us: int
    total_us: int
    cached: CachedTokens
    choices: Mapping[int, Timeline]

    @classmethod
    def of(cls, account: Account, *, request_id: str, trace_id: str, total_s: float) -> Self:
        """Of an answer that is complete."""
        return cls(
            request_id=request_id,
            trace_id=trace_id,
            routed=account.routed,
            encoded_us=_us(account.encoded_s or 0.0),
            first_us=_us(account.first_s or 0.0),
            total_us=_us(total_s),
            cached=account.cached,
            choices=account.timelines,
        )

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "request_id": self.request_id,
            "trace_id": self.trace_id,
            "routed": self.routed,
            "encoded_us": self.encoded_us,
            "first_us": self.first_us,
            "total_us": self.total_us,
            "cached_tokens": asdict(self.cached),
            "choices": [_choice(*pair) for pair in sorted(self.choices.items())],
        }


def _choice(index: int, timeline: Timeline) -> dict[str, Any]:
    """What follows one another comes first; `admission_us` is a part of `queued_us`."""
    miss = timeline.cache_miss
    return {
        "index": index,
        "fetch_us": timeline.fetch_us,
        "queued_us": timeline.queued_us,
        "prefill_us": timeline.prefill_us,
        "decode_us": timeline.decode_us,
        "admission_us": timeline.admission_us,
        "continuations": timeline.continuations,
        "preemptions": timeline.preemptions,
        "cached_tokens": asdict(timeline.cached_tokens),
        "cache_miss": None if miss is None else miss.name.lower(),
    }


def _us(seconds: float) -> int:
    return round(1e6 * seconds)
