"""What steps came to."""

from __future__ import annotations

import pytest

from services.engine.step_figures import Phase, StepFigures, StepTimes

MS = 1_000_000


def test_the_phases_of_steps_sum_up_to_their_time() -> None:
    figures = StepFigures()
    figures.note(StepTimes(0, 1 * MS, 9 * MS, 10 * MS, 3 * MS), 4)
    figures.note(StepTimes(20 * MS, 22 * MS, 28 * MS, 29 * MS, 0), 2)
    assert figures.phases == {
        Phase.SCHEDULE: 3 * MS,
        Phase.RUN: 11 * MS,
        Phase.SAMPLE: 3 * MS,
        Phase.PUBLISH: 2 * MS,
    }
    assert figures.seconds.total == pytest.approx(sum(figures.phases.values()) / 1e9)
    assert figures.schedule_seconds.total == pytest.approx(0.003)
    assert (figures.batch_sizes.count, figures.batch_sizes.total) == (2, 6)
