"""An engine's inner parts without threads or wire: submit generations, step, read events."""

from __future__ import annotations

from collections.abc import Sequence

from services.engine.admission import Admission, ServedModel
from services.engine.blocks import BlockPool
from services.engine.loop import EngineLoop, Results
from services.engine.parts import Parts
from services.engine.runner import Runner
from services.engine.scheduler import Limits, Scheduler
from services.engine.simulated import CostModel, SimulatedRunner
from services.engine.simulated_memory import SimulatedMemory
from services.engine.stopping import Stopper
from services.shared.stream.events import Event, Failed, Finished, Tokens
from services.shared.stream.generation import Generation

MODEL = ServedModel(
    name="test",
    fingerprint="f",
    vocabulary_size=1000,
    context_length=512,
    end_of_text_ids=frozenset({2}),
    kv_layout_id="l",
)
TIMEOUT_MS = 600_000
LIMITS = Limits(max_batch_size=8, token_budget=32)


def simulated(blocks: int = 64, size: int = 4, model: ServedModel = MODEL) -> Parts:
    memory = SimulatedMemory(blocks, size)
    return Parts(
        model=model,
        pool=BlockPool(blocks, size),
        runner=SimulatedRunner(range(3, 1000), memory, CostModel(step_us=0, token_us=0)),
        memory=memory,
        device="simulated",
        tokenizer_fingerprint="t",
    )


class Harness:
    """Steps by hand; events are kept by sequence key."""

    def __init__(self, parts: Parts, limits: Limits = LIMITS, runner: Runner | None = None) -> None:
        self.parts = parts
        self.admission = Admission(parts.model, TIMEOUT_MS)
        self.events: dict[int, list[Event]] = {}
        stopper = Stopper(parts.model.end_of_text_ids, parts.model.context_length)
        scheduler = Scheduler(parts.pool, limits)
        self.loop = EngineLoop(scheduler, runner or parts.runner, stopper, self._publish)

    def add(self, generation: Generation) -> int:
        sequence = self.admission.admit(generation)
        if generation.constraint is not None and self.parts.grammars is not None:
            sequence.matcher = self.parts.grammars.matcher(
                generation.constraint, generation.generated_ids
            )
        self.loop.add(sequence)
        return sequence.key

    def run(self) -> None:
        while not self.loop.scheduler.idle:
            self.loop.step()
        self.loop.command(self.loop.stop)
        self.loop.run()
        self.parts.pool.audit()

    def outputs(self, generations: Sequence[Generation]) -> list[list[int]]:
        """Adds all, runs to the end and gives each one's output."""
        keys = [self.add(generation) for generation in generations]
        while not self.loop.scheduler.idle:
            self.loop.step()
        self.parts.pool.audit()
        assert all(isinstance(self.end(key), Finished) for key in keys)
        return [self.ids(key) for key in keys]

    def ids(self, key: int) -> list[int]:
        """The tokens of a sequence, whose positions must have no gap."""
        ids: list[int] = []
        for event in self.events[key]:
            if isinstance(event, Tokens):
                assert event.first_position == len(ids)
                ids += event.ids
        return ids

    def end(self, key: int) -> Finished | Failed:
        last = self.events[key][-1]
        assert isinstance(last, (Finished, Failed))
        return last

    def _publish(self, results: Results) -> None:
        for key, event in results:
            self.events.setdefault(key, []).append(event)
