"""What an engine is put together from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from services.engine.admission import ServedModel
from services.engine.blocks import BlockPool
from services.engine.grammar import Grammars
from services.engine.kv.memory import BlockMemory
from services.engine.runner import Runner
from services.shared.model_folder import BadModelFolder, ModelFolder

BLOCK_SIZE = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class Parts:
    """A runner and all that must fit to it; without a tokenizer there are no grammars.

    `memory` is what the blocks of `pool` hold.
    """

    model: ServedModel
    pool: BlockPool
    runner: Runner
    device: str
    tokenizer_fingerprint: str
    memory: BlockMemory
    grammars: Grammars | None = None


def usable_context(wanted: int | None, model_context: int, blocks: int) -> int:
    """Tokens that prompt and output may have together: wanted, trained for, and in the pool."""
    return min(wanted or model_context, model_context, blocks * BLOCK_SIZE)


def existing_folder(path: Path) -> ModelFolder:
    """The folder of the settings; raises BadModelFolder with the remedy if there is none."""
    if not path.is_dir():
        raise BadModelFolder(f"{path} is no folder; set executor.model_path or run make model")
    return ModelFolder(path)
