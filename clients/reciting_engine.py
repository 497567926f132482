"""A simulated engine whose every answer is one text of which no piece can be missed.

It is started as the engine's process is; all but the choice of tokens is the engine's own.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from services.codec.prompt import PromptEncoder
from services.engine import sequence as state
from services.engine import simulated_parts
from services.engine.__main__ import main as run_engine
from services.engine.runner import Draw
from services.engine.simulated import CostModel, EndOfText, SimulatedRunner
from services.engine.simulated_memory import SimulatedMemory
from services.shared.model_folder import ModelFolder

THINGS = ("a lamp", "a stone", "a river", "some glass", "a horse", "white bread", "one cloud")
TEXT = " ".join(f"Item {number} is {THINGS[number % len(THINGS)]}." for number in range(1, 25))


class RecitingRunner(SimulatedRunner):
    """The token at a position is that of the text, whatever came before."""

    token_ids: Sequence[int] = ()

    def __init__(
        self,
        vocabulary: range,
        memory: SimulatedMemory,
        cost: CostModel,
        end: EndOfText | None = None,
    ) -> None:
        if end is None:
            raise ValueError("executor.simulation.output_tokens must be set to recite")
        super().__init__(vocabulary, memory, cost, EndOfText(end.token_id, len(self.token_ids)))

    def _draw(self, sequence: state.Sequence) -> Draw:
        draw = super()._draw(sequence)
        if sequence.position >= len(self.token_ids):
            return draw
        return Draw(self.token_ids[sequence.position], draw.logprobs)


def main(argv: Sequence[str]) -> int:
    settings = yaml.safe_load(Path(argv[argv.index("--config") + 1]).read_text())
    encoder = PromptEncoder(ModelFolder(Path(settings["executor"]["model_path"])), cache_bytes=0)
    RecitingRunner.token_ids = encoder.encode_text(TEXT)
    vars(simulated_parts)["SimulatedRunner"] = RecitingRunner
    return run_engine(argv)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
