"""What a step of the engine costs beyond its linear layers, at 1, 8 and 32 sequences of 128 tokens.

The sides take turns in one process, so that a busy machine slows them alike; the least time of each
counts. The last line has, for each number of sequences, the time of the linear layers alone over
that of the whole step.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from services.engine.model.batch import Chunk
from services.engine.threads import prepare_threads
from services.shared.model_folder import ModelFolder

if TYPE_CHECKING:
    from services.engine.model.llama import LlamaModel

DEFAULT_MODEL = Path(__file__).parents[1] / ".cache/models/smollm2-135m-instruct"
SEQUENCES = (1, 8, 32)
CONTEXT = 128
PREFILL = 512

Side = Callable[[], object]


def load_model(folder: Path) -> LlamaModel:
    """Loads a model onto the CPU; call prepare_threads before."""
    import torch  # noqa: PLC0415  # torch takes up its threads when it is imported

    from services.engine.model.llama import LlamaModel  # noqa: PLC0415  # as above

    return LlamaModel.load(ModelFolder(folder), device=torch.device("cpu"))


def sides(model: LlamaModel, rows: int, sequences: int) -> Mapping[str, Side]:
    """The linear layers alone and the forward pass, for `sequences` with `rows` in all."""
    import torch  # noqa: PLC0415  # as above

    each, blocks = rows // sequences, max(CONTEXT, rows) // 16
    pool = model.allocate(sequences * blocks, 16)
    start = max(CONTEXT - each, 0)
    chunks = [
        Chunk([5] * each, start, range(i * blocks, (i + 1) * blocks), wants_logits=True)
        for i in range(sequences)
    ]
    narrow = torch.randn(rows, model.config.hidden_size)
    wide = torch.randn(rows, model.config.intermediate_size)

    def linear() -> None:
        for layer in model.layers:
            layer.qkv(narrow)
            layer.out(narrow)
            layer.gate_up(narrow)
            layer.down(wide)
        model.lm_head(narrow[:sequences])

    return {"linear": linear, "forward": lambda: model.forward(chunks, pool)}


def least_ms(side_of: Mapping[str, Side], rounds: int) -> dict[str, float]:
    """The least time of each side over `rounds`, in which they take turns."""
    least = dict.fromkeys(side_of, float("inf"))
    for _ in range(rounds):
        for name, side in side_of.items():
            began = time.perf_counter()
            side()
            least[name] = min(least[name], (time.perf_counter() - began) * 1000)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--threads", type=int)
    options = parser.parse_args()
    prepare_threads(options.threads)
    model = load_model(options.model)
    ratios = []
    print(f"{'sequences':>9} {'rows':>5} {'linear ms':>10} {'forward ms':>11} {'ratio':>6}")
    for sequences, rows in [*((n, n) for n in SEQUENCES), (1, PREFILL)]:
        rounds = options.rounds if rows < PREFILL else 5
        least = least_ms(sides(model, rows, sequences), rounds)
        ratio = least["linear"] / least["forward"]
        print(
            f"{sequences:>9} {rows:>5} {least['linear']:>10.2f} {least['forward']:>11.2f}", end=""
        )
        print(f"{ratio:>7.2f}")
        ratios.append(f"{ratio:.2f} at {sequences}x{rows // sequences}")
    print(f"linear layers / step: {', '.join(ratios)}")


if __name__ == "__main__":
    main()
