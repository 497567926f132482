"""What the steps of an engine came to, in plain numbers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from services.engine.prompt_count import PromptTokens
from services.shared.histogram import WAIT_S, Histogram

STEP_S = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56)
SCHEDULE_S = (0.00001, 0.000025, 0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01)
BATCH = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Phase(StrEnum):
    """The parts of a step, in their order."""

    SCHEDULE = "schedule"
    RUN = "run"
    SAMPLE = "sample"
    PUBLISH = "publish"


@dataclass(frozen=True, slots=True)
class StepTimes:
    """When the parts of a step ended, by the monotonic clock in nanoseconds.

    Args:
        drawing: how long of the time until `computed` it drew tokens.
    """

    began: int
    scheduled: int
    computed: int
    ended: int
    drawing: int


class StepFigures:
    """Written by the loop's thread, read by any: one figure may be of a later step than another.

    Attributes:
        phases: nanoseconds of all steps.
        prompts: replaced whole.
        output_tokens: drawn.
    """

    def __init__(self) -> None:
        self.seconds = Histogram(STEP_S)
        self.schedule_seconds = Histogram(SCHEDULE_S)
        self.batch_sizes = Histogram(BATCH)
        self.queue_seconds = Histogram(WAIT_S)
        self.phases = dict.fromkeys(Phase, 0)
        self.prompts = PromptTokens()
        self.output_tokens = 0

    def note(self, times: StepTimes, batch: int) -> None:
        """A step that computed something for `batch` sequences."""
        self.batch_sizes.note(batch)
        self.seconds.note((times.ended - times.began) / 1e9)
        self.schedule_seconds.note((times.scheduled - times.began) / 1e9)
        phases = self.phases
        phases[Phase.SCHEDULE] += times.scheduled - times.began
        phases[Phase.RUN] += times.computed - times.scheduled - times.drawing
        phases[Phase.SAMPLE] += times.drawing
        phases[Phase.PUBLISH] += times.ended - times.computed
