"""The engine as a token source: generations in, events out, on the event loop's thread."""

from __future__ import annotations

import asyncio
import logging
import time
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial

from services.engine.admission import Admission
from services.engine.asking import asked
from services.engine.entry import DirectEntry, Entry
from services.engine.generation_counts import GenerationCounts, Outcome
from services.engine.grammar_queue import Compiling, GrammarQueue
from services.engine.loop import EngineLoop, Results
from services.engine.nvml import DeviceMonitor
from services.engine.sequence import Sequence
from services.engine.stages import stages_of
from services.shared.digest import token_digest
from services.shared.errors import Code, Overloaded, Unavailable, Unsupported
from services.shared.span_names import Attribute, error_in
from services.shared.stream.events import Cancel, CancelReason, Event, Failed, Finished, Sink
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.source import Submission
from services.shared.telemetry import OpenSpan, open_span
from services.shared.trace_context import TraceContext, current

Figures = dict[str, Attribute]

LEAVING = Failed(code=Code.UNAVAILABLE, message="the engine is stopping", retryable=True)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Live:
    """A generation that has not ended; `compiling` is what it waits for, if it has a constraint."""

    sequence: Sequence
    sink: Sink
    span: OpenSpan
    compiling: Compiling | None = None


class Engine:
    """Takes generations until it drains and passes on what the step loop makes of them.

    Args:
        max_concurrency: generations that run or wait at a time.
        grammars: None refuses constraints.
        entry: None has the step loop take each generation at once.
    """

    def __init__(
        self,
        admission: Admission,
        loop: EngineLoop,
        monitor: DeviceMonitor,
        max_concurrency: int,
        grammars: GrammarQueue | None = None,
        *,
        entry: Entry | None = None,
    ) -> None:
        self.state = ReplicaState.STARTING
        self._is_closed = False
        self._admission = admission
        self._loop = loop
        self._monitor = monitor
        self._max_concurrency = max_concurrency
        self._grammars = grammars
        self._entry = entry or DirectEntry(loop)
        self._live: dict[int, Live] = {}
        self._started = 0
        self._ended = dict.fromkeys(Outcome, 0)
        self._empty = asyncio.Event()
        self._empty.set()

    def submit(self, submission: Submission) -> Cancel:
        self._started += 1
        try:
            return self._taken(submission)
        except Exception:
            self._ended[Outcome.REFUSED] += 1
            raise

    def counts(self) -> GenerationCounts:
        """As of now; for the event loop's thread."""
        running = sum(1 for live in self._live.values() if live.sequence.blocks)
        return GenerationCounts(
            started=self._started,
            running=running,
            waiting=len(self._live) - running,
            fetching=sum(one.key in self._live for one in self._entry.waiting),
            ended=dict(self._ended),
        )

    def _taken(self, submission: Submission) -> Cancel:
        if self._is_closed or self.state is ReplicaState.STARTING:
            raise Unavailable(f"the engine is {self.state.name.lower()}")
        if len(self._live) >= self._max_concurrency:
            raise Overloaded(f"at most {self._max_concurrency} generations may run or wait")
        sequence = self._admission.admit(submission.generation)
        compiling = self._compile(sequence)
        span = open_span("engine.generate", TraceContext.given(submission.traceparent))
        self._live[sequence.key] = Live(sequence, submission.sink, span, compiling)
        self._empty.clear()
        prompt_ids = submission.generation.prompt_ids
        fields: Figures = {
            "prompt_tokens": len(prompt_ids),
            "prompt_digest": token_digest(prompt_ids),
        }
        self._note("prompt received", self._live[sequence.key], fields)
        if compiling is None:
            self._begin(sequence)
        return partial(self._cancel, sequence.key)

    def load(self) -> Load:
        """Generations whose blocks are still on their way are waiting."""
        load = self._loop.progress.load
        coming = list(self._entry.waiting)
        return replace(
            load,
            state=self.state,
            waiting=load.waiting + len(coming),
            pending_prompt_tokens=load.pending_prompt_tokens
            + sum(sequence.remaining - 1 for sequence in coming),
            outstanding_tokens=load.outstanding_tokens
            + sum(sequence.outstanding for sequence in coming),
            progress_age_ms=self._loop.progress.age_ms,
            device_memory=self._monitor.memory(),
            device_utilization=self._monitor.utilization(),
            fetches_blocks=self._entry.fetches_blocks,
        )

    def deliver(self, results: Results) -> None:
        """Passes a step's results on; events of cancelled generations are dropped."""
        for key, event in results:
            live = self._live.get(key)
            if live is None:
                continue
            if isinstance(event, (Finished, Failed)):
                is_finished = isinstance(event, Finished)
                self._ended[Outcome.FINISHED if is_finished else Outcome.FAILED] += 1
                self._close(key, live, _end_of(event))
            try:
                live.sink(event)
            except Exception:  # noqa: BLE001  # one reader must not end its neighbours
                _log.exception("a reader failed", extra={"trace": live.span.context})
                self._cancel(key, CancelReason.CLIENT_GONE)

    def leave(self) -> None:
        """Tells routers to send nothing new; what is on its way is taken."""
        self.state = ReplicaState.DRAINING

    async def drain(self, timeout_s: float | None = None) -> None:
        """Takes nothing new; returns when the last generation has ended.

        What still runs after `timeout_s` seconds fails, to be continued by another replica.
        """
        self._close_door()
        try:
            async with asyncio.timeout(timeout_s):
                await self._empty.wait()
        except TimeoutError:
            self.break_off()

    def break_off(self) -> None:
        """Takes nothing new; what runs fails, to be continued by another replica."""
        self._close_door()
        self.deliver([(key, LEAVING) for key in self._live])

    def _close_door(self) -> None:
        self.leave()
        self._is_closed = True

    async def flush_cache(self) -> int:
        """Drops cached blocks and tells how many."""
        return await asked(self._loop, self._loop.scheduler.pool.flush)

    def _compile(self, sequence: Sequence) -> Compiling | None:
        if sequence.generation.constraint is None:
            return None
        if self._grammars is None:
            raise Unsupported("constraint is not supported by this engine", field="constraint")
        return self._grammars.put(sequence, partial(self._begin, sequence))

    def _begin(self, sequence: Sequence, failure: Failed | None = None) -> None:
        if failure is not None:
            self.deliver([(sequence.key, failure)])
        elif sequence.key in self._live:
            copy_context().run(self._enter, self._live[sequence.key])

    def _enter(self, live: Live) -> None:
        """What is begun for it, the fetch of its blocks, belongs to its trace."""
        current.set(live.span.context)
        self._entry.add(live.sequence)

    def _cancel(self, key: int, reason: CancelReason) -> None:
        live = self._live.get(key)
        if live is not None:
            self._ended[Outcome.CANCELLED] += 1
            self._close(key, live, f"cancelled: {reason.name.lower()}")
            self._loop.command(partial(self._loop.cancel, live.sequence))

    def _close(self, key: int, live: Live, end: str) -> None:
        del self._live[key]
        if live.compiling is not None:
            live.compiling.cancel()
        self._entry.drop(live.sequence)
        output_ids = live.sequence.output_ids
        fields: Figures = {
            "end": end,
            "output_tokens": len(output_ids),
            "output_digest": token_digest(output_ids),
            "cached_tokens": live.sequence.cached_tokens.total,
            "preemptions": live.sequence.preemptions,
        }
        self._trace(live, fields | error_in(end))
        self._note("generation ended", live, fields)
        if not self._live:
            self._empty.set()

    def _trace(self, live: Live, fields: Figures) -> None:
        """Its stages as spans, all at once: nothing is traced while steps are made."""
        generation = live.sequence.generation
        for stage in stages_of(live.sequence, time.monotonic_ns()):
            live.span.stage(stage.name, stage.began_ns, stage.ended_ns, stage.figures)
        named: Figures = {
            "request_id": generation.request_id,
            "prompt_tokens": len(generation.prompt_ids),
        }
        live.span.end(named | fields)

    def _note(self, message: str, live: Live, fields: Figures) -> None:
        named = {"request_id": live.sequence.generation.request_id, **fields}
        _log.info(message, extra={"trace": live.span.context, "fields": named})


def _end_of(event: Event) -> str:
    match event:
        case Finished(reason=reason):
            return reason.name.lower()
        case Failed(code=code):
            return f"failed: {code.name.lower()}"
        case _:
            return "running"
