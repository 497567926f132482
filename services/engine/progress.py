"""What the step loop did last, for threads that may not touch its state."""

from __future__ import annotations

import time

from services.engine.block_counts import BlockCounts
from services.engine.scheduler import Scheduler
from services.engine.step_figures import StepFigures, StepTimes
from services.shared.stream.load import Load, ReplicaState

MEASURE_INTERVAL_NS = 50_000_000


class Progress:
    """Written by the loop's thread; the values others read are replaced whole.

    Attributes:
        load: counts as of at most 50 ms before the last step.
        blocks: the pool's, as of the same moment.
        steps: steps so far.
        scheduled_us: time that all steps took until their work was known.
        figures: of all steps.
        preemptions, recomputed_tokens: as the scheduler counts them.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._measured_ns = 0
        self._step_us = 0
        self.steps = 0
        self.scheduled_us = 0
        self.figures = StepFigures()
        self.last_step_ns = time.monotonic_ns()
        self.load = self._measure()

    @property
    def age_ms(self) -> int:
        """Milliseconds since the last step, while there is work."""
        if not self.load.running + self.load.waiting:
            return 0
        return (time.monotonic_ns() - self.last_step_ns) // 1_000_000

    @property
    def preemptions(self) -> int:
        return self._scheduler.preemptions

    @property
    def recomputed_tokens(self) -> int:
        return self._scheduler.recomputed_tokens

    def stepped(self, times: StepTimes, batch: int) -> None:
        """Notes a step for `batch` sequences."""
        self.steps += 1
        self.scheduled_us += (times.scheduled - times.began) // 1000
        self.last_step_ns = times.ended
        self._step_us = (self.last_step_ns - times.began) // 1000
        if batch:
            self.figures.note(times, batch)
        if self.last_step_ns - self._measured_ns > MEASURE_INTERVAL_NS:
            self.load = self._measure()

    def resting(self) -> None:
        """Notes that the loop waits, or that it goes on after waiting."""
        self.last_step_ns = time.monotonic_ns()
        self.load = self._measure()

    def _measure(self) -> Load:
        scheduler, pool = self._scheduler, self._scheduler.pool
        self._measured_ns = time.monotonic_ns()
        self.blocks = BlockCounts.of(pool)
        return Load(
            state=ReplicaState.READY,
            running=len(scheduler.running),
            waiting=len(scheduler.waiting),
            pending_prompt_tokens=sum(sequence.remaining - 1 for sequence in scheduler),
            outstanding_tokens=sum(sequence.outstanding for sequence in scheduler),
            free_blocks=pool.free,
            cached_blocks=pool.cached,
            total_blocks=pool.count,
            leased_blocks=pool.leased,
            step_us=self._step_us,
            slots=scheduler.limits.max_batch_size,
        )
