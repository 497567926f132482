"""Where the time of a request went, drawn on one axis for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from services.shared.request_log.row import GenerationRow, RequestRow

WIDTH = 60
"""Characters of the axis."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """A part of a request, in microseconds from its beginning.

    Args:
        whose: what did it.
    """

    whose: str
    name: str
    start_us: int
    end_us: int


def trace_view(request: RequestRow) -> RenderableType:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name in ("", "stage"):
        table.add_column(name, no_wrap=True)
    for name in ("from ms", "ms"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("0 to " + _ms(request.duration_us) + " ms", no_wrap=True)
    for stage in stages(request):
        length_us = stage.end_us - stage.start_us
        bar = _bar(stage, request.duration_us)
        table.add_row(stage.whose, stage.name, _ms(stage.start_us), _ms(length_us), bar)
    return Group(*map(Text, _head(request)), table)


def stages(request: RequestRow) -> list[Stage]:
    """In the order of time; those that took none are left out.

    The ways between the services and the wait in the router are what is left until the first part
    of the answer, when codec and engine have told theirs.
    """
    encoded_us = request.encoded_us or 0
    found = [Stage(whose="codec", name="read, encode", start_us=0, end_us=encoded_us)]
    for one in request.generations:
        whose = f"choice {one.choice}" if len(request.generations) > 1 else "engine"
        start_us = encoded_us + _way_us(request, one)
        found.append(Stage(whose="router", name="place", start_us=encoded_us, end_us=start_us))
        for name, length_us in _lengths(one):
            end_us = start_us + length_us
            found.append(Stage(whose=whose, name=name, start_us=start_us, end_us=end_us))
            start_us = end_us
    if request.first_us is not None:
        end_us = request.duration_us
        found.append(Stage(whose="codec", name="answer", start_us=request.first_us, end_us=end_us))
    return [stage for stage in found if stage.end_us > stage.start_us]


def _lengths(one: GenerationRow) -> Iterator[tuple[str, int]]:
    yield "fetch", one.fetch_us
    yield "queue", one.queued_us - one.admission_us  # the rest of it was the router's
    yield "prefill", one.prefill_us
    yield "decode", one.decode_us


def _way_us(request: RequestRow, one: GenerationRow) -> int:
    if request.first_us is None or request.encoded_us is None:
        return one.admission_us
    engine_us = one.fetch_us + one.queued_us - one.admission_us + one.prefill_us
    return max(one.admission_us, request.first_us - request.encoded_us - engine_us)


def _head(request: RequestRow) -> Iterator[str]:
    began = datetime.fromtimestamp(request.began_us / 1e6, UTC)
    error = f", {request.error}" if request.error else ""
    yield f"request {request.request_id}, trace {request.trace_id}"
    yield (
        f"{began:%Y-%m-%d %H:%M:%S.%f} UTC, {request.door} {request.path}, "
        f"{'streamed' if request.stream else 'whole'}, {request.outcome}{error}"
    )
    yield (
        f"tenant {request.tenant or '-'}, key {request.key_id or '-'}, model {request.model or '-'}"
    )
    yield f"prompt {_prompt(request)}, output {request.completion_tokens}"
    if request.routed:
        yield f"routed: {request.routed}"
    if request.filter_rules:
        yield f"blocked by the content filter: {request.filter_rules}"
    yield from _interruptions(request.generations)


def _prompt(request: RequestRow) -> str:
    """Tokens, and where those were that needed no computing."""
    tiers = {
        "device": request.cached_device_tokens,
        "host": request.cached_host_tokens,
        "peer": request.cached_peer_tokens,
        "service": request.cached_service_tokens,
    }
    found = [f"{count} {tier}" for tier, count in tiers.items() if count]
    misses = {one.cache_miss for one in request.generations if one.cache_miss}
    told = f"{request.prompt_tokens} tokens ({', '.join(found) or 'none'} cached"
    return f"{told}; then {', '.join(sorted(misses))})" if misses else f"{told})"


def _interruptions(generations: Sequence[GenerationRow]) -> Iterator[str]:
    continuations = sum(one.continuations for one in generations)
    preemptions = sum(one.preemptions for one in generations)
    if continuations or preemptions:
        yield f"went on elsewhere {continuations} times, was preempted {preemptions} times"


def _bar(stage: Stage, whole_us: int) -> str:
    """At least one character, so that nothing that took time is out of sight."""
    whole_us = max(1, whole_us)
    start = min(WIDTH - 1, WIDTH * stage.start_us // whole_us)
    end = max(start + 1, min(WIDTH, round(WIDTH * stage.end_us / whole_us)))
    return " " * start + "█" * (end - start)


def _ms(microseconds: int) -> str:
    return f"{microseconds / 1000:.1f}"
