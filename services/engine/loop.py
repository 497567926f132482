"""The step loop: the one thread that touches scheduler, blocks and tensors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue

from services.engine import outcome
from services.engine import sequence as state
from services.engine.collector import Collector
from services.engine.progress import Progress
from services.engine.runner import Draw, Runner
from services.engine.scheduler import Scheduler, SequenceFault, Work
from services.engine.step_figures import StepTimes
from services.engine.stopping import Stopper
from services.shared.errors import Code, ServiceError
from services.shared.stream.block_changes import BlockChanges
from services.shared.stream.events import Event, Failed

Command = Callable[[], None]
Results = list[tuple[int, Event]]
BlockTell = Callable[[BlockChanges], None]

PAUSE_S = 0.01
"""Between two looks for deadlines while nothing can run."""

BROKEN = Failed(code=Code.INTERNAL, message="internal error")
LATE = Failed(code=Code.DEADLINE_EXCEEDED, message="the deadline of the request passed")

_log = logging.getLogger(__name__)


class EngineLoop:
    """Runs steps while there is work.

    Args:
        publish: takes a step's results, sequence key and event, in order; called on this thread.
        wait_ns: how long a first sequence waits for others before an idle loop starts.

    Attributes:
        after_step: called on this thread after each step, before anything gives way for the next.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        runner: Runner,
        stopper: Stopper,
        publish: Callable[[Results], None],
        wait_ns: int = 0,
    ) -> None:
        self.scheduler = scheduler
        self.progress = Progress(scheduler)
        self.collector = Collector()
        self.after_step: Callable[[], None] = _nothing
        self._runner = runner
        self._stopper = stopper
        self._publish = publish
        self._wait_ns = wait_ns
        self._commands: SimpleQueue[Command] = SimpleQueue()
        self._results: Results = []
        self._tell_blocks: BlockTell | None = None
        self._stopped = False

    def command(self, command: Command) -> None:
        """Has the loop call `command` between two steps. For any thread."""
        self._commands.put(command)

    def run(self) -> None:
        """Steps until `stop`."""
        while not self._stopped:
            if self.scheduler.idle:
                self._rest()
            elif not self.step():
                self._pause()

    def stop(self) -> None:
        """A command: ends `run`."""
        self._stopped = True

    def add(self, sequence: state.Sequence) -> None:
        """A command: takes a sequence, which may be complete already."""
        with self._isolated(sequence):
            end = self._stopper.end(sequence) if sequence.position else None
            if end is None:
                self.scheduler.add(sequence)
            else:
                self._tell(sequence, outcome.accepted(sequence))
                self._tell(sequence, outcome.finished(sequence, end))

    def cancel(self, sequence: state.Sequence) -> None:
        """A command: forgets a sequence and frees its blocks."""
        self.scheduler.remove(sequence)

    def watch_blocks(self, tell: BlockTell) -> list[bytes]:
        """A command: all addresses that can be found; `tell` hears of each step's changes."""
        self._flush_blocks()
        self._tell_blocks = tell
        return self.scheduler.pool.watch()

    def unwatch_blocks(self) -> None:
        """A command: nobody wants to hear of blocks."""
        self._tell_blocks = None
        self.scheduler.pool.unwatch()

    def step(self) -> bool:
        """Computes what there is; False where nothing of it has the blocks that it needs."""
        began_ns = time.monotonic_ns()
        self._take_commands()
        self._expire(began_ns)
        works = self._schedule()
        scheduled_ns, drawn_ns = time.monotonic_ns(), self._runner.drawn_ns
        draws = self._compute(works)
        computed_ns, drawing_ns = time.monotonic_ns(), self._runner.drawn_ns - drawn_ns
        for work in works:
            if work.sequence.blocks:
                with self._isolated(work.sequence):
                    self._settle(work, draws.get(work.sequence.key), scheduled_ns)
        self.after_step()
        self._flush()
        ended_ns = time.monotonic_ns()
        times = StepTimes(began_ns, scheduled_ns, computed_ns, ended_ns, drawing_ns)
        self.progress.stepped(times, len(works))
        self.collector.after_step()
        return bool(works)

    def _pause(self) -> None:
        """All blocks are leased: waits for a command that gives some back, or for a deadline."""
        with suppress(Empty):
            self._commands.get(timeout=PAUSE_S)()

    def _rest(self) -> None:
        """Waits for a command, then as long as a batch may take to gather."""
        self._flush()
        self.collector.when_idle()
        self.progress.resting()
        self._commands.get()()
        until = time.monotonic_ns() + self._wait_ns
        while (left := until - time.monotonic_ns()) > 0 and not self._stopped:
            try:
                self._commands.get(timeout=left / 1e9)()
            except Empty:
                break
        self.progress.resting()

    def _take_commands(self) -> None:
        while not self._commands.empty():
            self._commands.get()()

    def _expire(self, now_ns: int) -> None:
        late = [sequence for sequence in self.scheduler if sequence.deadline_ns <= now_ns]
        for sequence in late:
            self._end(sequence, LATE)

    def _schedule(self) -> list[Work]:
        while True:
            try:
                return self.scheduler.schedule()
            except SequenceFault as fault:
                self._break(fault.sequence, fault)

    def _compute(self, works: Sequence[Work]) -> dict[int, Draw]:
        """Draws by sequence key. If a batch fails, each work is run alone: one fails, not all."""
        try:
            draws = iter(self._runner.run(works) if works else ())
            return {work.sequence.key: next(draws) for work in works if work.draws}
        except Exception as error:  # noqa: BLE001  # one sequence must not end its neighbours
            if len(works) > 1:
                return {key: draw for work in works for key, draw in self._compute([work]).items()}
            self._break(works[0].sequence, error)
            return {}

    def _settle(self, work: Work, draw: Draw | None, scheduled_ns: int) -> None:
        sequence = work.sequence
        if sequence.scheduled_ns is None:
            self._first(sequence, scheduled_ns)
        if not sequence.prompt.is_told and sequence.prompt.compute(sequence.computed, work.count):
            figures = self.progress.figures
            figures.prompts = figures.prompts.plus(sequence.prompt, sequence.cached_tokens)
        self.scheduler.advance(work)
        if draw is None:
            return
        if sequence.generation.stopping.max_tokens != 0:
            self._append(sequence, draw)
        end = self._stopper.end(sequence)
        if end is not None:
            self._end(sequence, outcome.finished(sequence, end))

    def _first(self, sequence: state.Sequence, scheduled_ns: int) -> None:
        """It was in a step for the first time."""
        sequence.scheduled_ns = scheduled_ns
        sequence.prompt.reached = sequence.cached_tokens.total
        waited_ns = scheduled_ns - sequence.arrived_ns
        self.progress.figures.queue_seconds.note(waited_ns / 1e9)
        self._tell(sequence, outcome.accepted(sequence))

    def _append(self, sequence: state.Sequence, draw: Draw) -> None:
        sequence.append(draw.token_id)
        self.progress.figures.output_tokens += 1
        sequence.first_token_ns = sequence.first_token_ns or time.monotonic_ns()
        self._tell(sequence, outcome.drawn(sequence, draw))

    @contextmanager
    def _isolated(self, sequence: state.Sequence) -> Iterator[None]:
        """A bug inside ends this sequence, not its neighbours."""
        try:
            yield
        except Exception as error:  # noqa: BLE001  # see above
            self._break(sequence, error)

    def _break(self, sequence: state.Sequence, error: Exception) -> None:
        if isinstance(error, ServiceError):
            self._end(sequence, Failed.of(error))
            return
        fields = {"request_id": sequence.generation.request_id}
        _log.exception("a bug ended a sequence", extra={"fields": fields})
        self._end(sequence, BROKEN)

    def _end(self, sequence: state.Sequence, event: Event) -> None:
        self.scheduler.remove(sequence)
        self._tell(sequence, event)

    def _tell(self, sequence: state.Sequence, event: Event) -> None:
        self._results.append((sequence.key, event))

    def _flush(self) -> None:
        self._flush_blocks()
        if self._results:
            results, self._results = self._results, []
            self._publish(results)

    def _flush_blocks(self) -> None:
        if self._tell_blocks is not None:
            changes = self.scheduler.pool.take_changes()
            if changes is not None:
                self._tell_blocks(changes)


def _nothing() -> None:
    """Nobody cares for steps."""
