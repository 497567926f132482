"""An engine's step loop without threads or wire: add generations, then step by hand."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path

from services.engine.admission import Admission
from services.engine.loop import EngineLoop, Results
from services.engine.parts import Parts
from services.engine.scheduler import Limits, Scheduler
from services.engine.settings import ExecutorSettings, LimitSettings, MemorySettings
from services.engine.stopping import Stopper
from services.engine.threads import prepare_threads
from services.shared.byte_size import ByteSize
from services.shared.stream.generation import Generation, Sampling, Stopping

POOL_BYTES = 512 * 2**20


def real_parts(folder: Path) -> Parts:
    """The parts of an engine with the model in `folder`, warm; torch is not to be loaded yet."""
    prepare_threads(None)
    from services.engine.model_parts import model_parts  # noqa: PLC0415  # after prepare_threads

    memory = MemorySettings(kv_cache_bytes=ByteSize(POOL_BYTES))
    parts = model_parts(ExecutorSettings(model_path=folder, memory=memory))
    parts.runner.warm_up()
    return parts


def generation(number: int, prompt_tokens: int, max_tokens: int) -> Generation:
    """A greedy generation whose prompt no other number shares a prefix with."""
    draw = random.Random(number)  # noqa: S311  # no secret
    return Generation(
        request_id=f"bench-{number}",
        prompt_ids=[draw.randrange(1000, 40_000) for _ in range(prompt_tokens)],
        sampling=Sampling(temperature=0),
        stopping=Stopping(max_tokens=max_tokens, ignore_eos=True),
    )


class StepLoop:
    """A loop with its admission; `publish` takes each step's results."""

    def __init__(self, parts: Parts, limits: Limits, publish: Callable[[Results], None]) -> None:
        self._admission = Admission(parts.model, LimitSettings().request_timeout_ms)
        self._grammars = parts.grammars
        stopper = Stopper(parts.model.end_of_text_ids, parts.model.context_length)
        scheduler = Scheduler(parts.pool, limits)
        self.loop = EngineLoop(scheduler, parts.runner, stopper, publish)

    def add(self, generations: Sequence[Generation]) -> list[int]:
        """Takes generations, and gives the keys of their results."""
        sequences = [self._admission.admit(each) for each in generations]
        for sequence in sequences:
            constraint = sequence.generation.constraint
            if constraint is not None and self._grammars is not None:
                sequence.matcher = self._grammars.matcher(constraint, ())
            self.loop.add(sequence)
        return [sequence.key for sequence in sequences]
