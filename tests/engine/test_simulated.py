"""A simulated output ends by itself where it was told to."""

from __future__ import annotations

from services.engine.simulated import CostModel, EndOfText, SimulatedRunner
from services.engine.simulated_memory import SimulatedMemory
from services.shared.stream.events import Finished, FinishReason
from services.shared.stream.generation import Generation, Sampling, Stopping
from tests.engine.harness import Harness, simulated

ASKED = Generation(
    request_id="r",
    prompt_ids=[5, 6, 7],
    sampling=Sampling(seed=1),
    stopping=Stopping(max_tokens=20),
)


def test_an_output_ends_after_its_tokens_and_is_the_same_until_then() -> None:
    parts, cost = simulated(), CostModel(step_us=0, token_us=0)
    memory = SimulatedMemory(parts.pool.count, parts.pool.size)
    runner = SimulatedRunner(range(3, 1000), memory, cost, EndOfText(2, 5))
    harness = Harness(parts, runner=runner)
    (brief,) = harness.outputs([ASKED])
    (whole,) = Harness(simulated()).outputs([ASKED])
    ((key, _),) = harness.events.items()
    end = harness.end(key)
    assert isinstance(end, Finished)
    assert end.reason is FinishReason.END_OF_TEXT
    assert len(whole) == 20
    assert brief[:5] == whole[:5]
    assert len(brief) == end.usage.completion_tokens
