"""Events and loads to messages and back; tokens of many streams travel in columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate

from tokenway.stream.v1 import stream_pb2 as pb
from tokenway.types.v1 import types_pb2 as types

from services.shared.errors import Code, InvalidRequest
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    CacheMiss,
    Event,
    Failed,
    Finished,
    FinishReason,
    Logprobs,
    Refused,
    Timeline,
    Tokens,
    Usage,
)

_CODES: dict[int, Code] = {code.value: code for code in Code}
_REASONS: dict[int, FinishReason] = {reason.value: reason for reason in FinishReason}
_MISSES: dict[int, CacheMiss] = {miss.value: miss for miss in CacheMiss}


def frame_of(events: Mapping[int, Sequence[Event | Refused]]) -> pb.StepFrame:
    """One frame with the events of many streams."""
    frame = pb.StepFrame()
    stream_ids: list[int] = []
    first_positions: list[int] = []
    counts: list[int] = []
    token_ids: list[int] = []
    for stream_id, stream_events in events.items():
        for event in stream_events:
            if not isinstance(event, Tokens):
                frame.events.append(_stream_event(stream_id, event))
                continue
            stream_ids.append(stream_id)
            first_positions.append(event.first_position)
            counts.append(len(event.ids))
            token_ids += event.ids
            if event.logprobs is not None:
                frame.logprobs.add(stream_id=stream_id, logprobs=logprobs_of(event.logprobs))
    frame.stream_ids.extend(stream_ids)
    frame.first_positions.extend(first_positions)
    frame.counts.extend(counts)
    frame.token_ids.extend(token_ids)
    return frame


def events_of(frame: pb.StepFrame) -> list[tuple[int, Event | Refused]]:
    """The events of a frame: for each stream Accepted, then tokens, then its end.

    Raises:
        InvalidRequest: the columns do not belong together, or a value is not known.
    """
    begins: list[tuple[int, Event | Refused]] = []
    ends: list[tuple[int, Event | Refused]] = []
    for message in frame.events:
        event = _event_from(message)
        (begins if isinstance(event, Accepted) else ends).append((message.stream_id, event))
    return [*begins, *_tokens_of(frame), *ends]


def _tokens_of(frame: pb.StepFrame) -> list[tuple[int, Tokens]]:
    token_ids = list(frame.token_ids)
    counts = list(frame.counts)
    columns = (len(frame.stream_ids), len(frame.first_positions), len(counts))
    if len(set(columns)) != 1 or sum(counts) != len(token_ids):
        raise InvalidRequest(
            f"a frame's columns must fit together, got {columns} for {len(token_ids)} tokens"
        )
    logprobs = {entry.stream_id: logprobs_from(entry.logprobs) for entry in frame.logprobs}
    offsets = accumulate(counts, initial=0)
    return [
        (stream_id, Tokens(first, token_ids[offset : offset + count], logprobs.get(stream_id)))
        for stream_id, first, offset, count in zip(
            frame.stream_ids, frame.first_positions, offsets, counts, strict=False
        )
    ]


def response_of(event: Accepted | Tokens | Finished) -> pb.GenerateResponse:
    """The message of one event on the simple door."""
    match event:
        case Accepted():
            return pb.GenerateResponse(accepted=_accepted_of(event))
        case Finished():
            return pb.GenerateResponse(finished=_finished_of(event))
        case Tokens(first, ids, logprobs):
            return pb.GenerateResponse(
                tokens=pb.Tokens(
                    first_position=first,
                    token_ids=ids,
                    logprobs=None if logprobs is None else logprobs_of(logprobs),
                )
            )


def _stream_event(stream_id: int, event: Accepted | Finished | Failed | Refused) -> pb.StreamEvent:
    match event:
        case Accepted():
            return pb.StreamEvent(stream_id=stream_id, accepted=_accepted_of(event))
        case Finished():
            return pb.StreamEvent(stream_id=stream_id, finished=_finished_of(event))
        case Refused(message):
            return pb.StreamEvent(stream_id=stream_id, refused=pb.Refused(message=message))
        case Failed():
            return pb.StreamEvent(stream_id=stream_id, failed=_failed_of(event))


def _event_from(message: pb.StreamEvent) -> Accepted | Finished | Failed | Refused:
    match message.WhichOneof("event"):
        case "accepted":
            return _accepted_from(message.accepted)
        case "finished":
            return _finished_from(message.finished)
        case "failed":
            return _failed_from(message.failed)
        case _:
            return Refused(message.refused.message)


def _failed_of(event: Failed) -> pb.Failed:
    after_s = event.retry_after_s
    return pb.Failed(
        code=event.code.value,
        message=event.message,
        retryable=event.retryable,
        field=event.field,
        retry_after_ms=None if after_s is None else round(1000 * after_s),
    )


def _failed_from(message: pb.Failed) -> Failed:
    return Failed(
        code=_CODES.get(message.code, Code.UNKNOWN),
        message=message.message,
        retryable=message.retryable,
        field=message.field if message.HasField("field") else None,
        retry_after_s=message.retry_after_ms / 1000 if message.HasField("retry_after_ms") else None,
    )


def _accepted_of(event: Accepted) -> pb.Accepted:
    return pb.Accepted(
        prompt_tokens=event.prompt_tokens,
        cached_tokens=_cached_of(event.cached_tokens),
        seed=event.seed,
        routed=event.routed,
    )


def _accepted_from(message: pb.Accepted) -> Accepted:
    return Accepted(
        prompt_tokens=message.prompt_tokens,
        cached_tokens=_cached_from(message.cached_tokens),
        seed=message.seed,
        routed=message.routed,
    )


def _cached_of(cached: CachedTokens) -> types.CachedTokens:
    return types.CachedTokens(
        device=cached.device, host=cached.host, peer=cached.peer, service=cached.service
    )


def _cached_from(message: types.CachedTokens) -> CachedTokens:
    return CachedTokens(
        device=message.device, host=message.host, peer=message.peer, service=message.service
    )


def _finished_of(event: Finished) -> pb.Finished:
    usage, timeline = event.usage, event.timeline
    return pb.Finished(
        reason=types.FinishReason.ValueType(event.reason),
        stop_token_id=event.stop_token_id,
        usage=types.Usage(
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
        ),
        timeline=_timeline_of(timeline),
    )


def _finished_from(message: pb.Finished) -> Finished:
    reason = _REASONS.get(message.reason)
    if reason is None:
        raise InvalidRequest(f"finish reason {message.reason} is not known")
    usage, timeline = message.usage, message.timeline
    return Finished(
        reason=reason,
        stop_token_id=message.stop_token_id if message.HasField("stop_token_id") else None,
        usage=Usage(
            prompt_tokens=usage.prompt_tokens,
            cached_tokens=usage.cached_tokens,
            completion_tokens=usage.completion_tokens,
        ),
        timeline=_timeline_from(timeline),
    )


def _timeline_of(timeline: Timeline) -> types.Timeline:
    miss = timeline.cache_miss
    return types.Timeline(
        queued_us=timeline.queued_us,
        prefill_us=timeline.prefill_us,
        decode_us=timeline.decode_us,
        preemptions=timeline.preemptions,
        continuations=timeline.continuations,
        fetch_us=timeline.fetch_us,
        cached_tokens=_cached_of(timeline.cached_tokens),
        cache_miss=None if miss is None else types.CacheMiss.ValueType(miss),
        admission_us=timeline.admission_us,
    )


def _timeline_from(message: types.Timeline) -> Timeline:
    return Timeline(
        queued_us=message.queued_us,
        prefill_us=message.prefill_us,
        decode_us=message.decode_us,
        preemptions=message.preemptions,
        continuations=message.continuations,
        fetch_us=message.fetch_us,
        cached_tokens=_cached_from(message.cached_tokens),
        cache_miss=_MISSES.get(message.cache_miss),
        admission_us=message.admission_us,
    )


def logprobs_of(logprobs: Logprobs) -> pb.Logprobs:
    return pb.Logprobs(
        chosen=logprobs.chosen,
        top_token_ids=logprobs.top_token_ids,
        top_logprobs=logprobs.top_logprobs,
    )


def logprobs_from(message: pb.Logprobs) -> Logprobs:
    return Logprobs(
        chosen=list(message.chosen),
        top_token_ids=list(message.top_token_ids),
        top_logprobs=list(message.top_logprobs),
    )
