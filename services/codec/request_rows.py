"""A request that has ended as a row of the request log."""

from __future__ import annotations

from services.codec.request_record import RequestRecord
from services.shared.request_log.row import GenerationRow, RequestRow, new_entry_id
from services.shared.stream.events import Timeline


def row_of(record: RequestRecord) -> RequestRow:
    account, began_us = record.account, _us(record.began_at)
    return RequestRow(
        entry_id=new_entry_id(began_us),
        request_id=record.request_id,
        trace_id=record.trace_id,
        began_us=began_us,
        duration_us=_us(record.duration_s),
        door=record.door,
        path=record.path,
        operation=account.operation,
        model=account.model,
        tenant=record.tenant,
        key_id=record.key_id,
        outcome=record.outcome,
        error=record.error,
        stream=account.stream,
        choices=account.choices,
        prompt_tokens=account.prompt_tokens,
        cached_device_tokens=account.cached.device,
        cached_host_tokens=account.cached.host,
        cached_peer_tokens=account.cached.peer,
        cached_service_tokens=account.cached.service,
        completion_tokens=account.completion_tokens,
        encoded_us=None if account.encoded_s is None else _us(account.encoded_s),
        first_us=None if account.first_s is None else _us(account.first_s),
        routed=account.routed,
        filter_rules=",".join(account.filter_rules),
        generations=tuple(_generation(*pair) for pair in account.timelines.items()),
    )


def _generation(choice: int, timeline: Timeline) -> GenerationRow:
    miss = timeline.cache_miss
    return GenerationRow(
        choice=choice,
        fetch_us=timeline.fetch_us,
        queued_us=timeline.queued_us,
        admission_us=timeline.admission_us,
        prefill_us=timeline.prefill_us,
        decode_us=timeline.decode_us,
        preemptions=timeline.preemptions,
        continuations=timeline.continuations,
        cache_miss=None if miss is None else miss.name.lower(),
    )


def _us(seconds: float) -> int:
    return round(1e6 * seconds)
