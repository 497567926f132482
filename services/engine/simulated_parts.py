"""The parts of an engine that computes nothing and keeps time."""

from __future__ import annotations

from services.engine.admission import ServedModel
from services.engine.blocks import BlockPool
from services.engine.grammar_compiler import grammars_of
from services.engine.model.config import read_config
from services.engine.parts import BLOCK_SIZE, Parts, existing_folder
from services.engine.settings import ExecutorSettings
from services.engine.simulated import CostModel, EndOfText, SimulatedRunner
from services.engine.simulated_memory import SimulatedMemory

DEFAULT_BLOCKS = 65_536


def simulated_parts(settings: ExecutorSettings) -> Parts:
    """Reads the folder's configuration, not its weights.

    The context is as long as the settings say, and a block costs no memory: `kv_cache_bytes` counts
    one byte for each token.
    """
    folder = existing_folder(settings.model_path)
    config = read_config(folder)
    size = settings.memory.kv_cache_bytes
    blocks = max(1, size // BLOCK_SIZE) if size else DEFAULT_BLOCKS
    context_length = settings.context_length or config.context_length
    end_of_text_ids = frozenset(config.eos_ids)
    vocabulary = range(max(end_of_text_ids, default=0) + 256, config.vocabulary_size)
    cost = CostModel(step_us=settings.simulation.step_us, token_us=settings.simulation.token_us)
    output_tokens = settings.simulation.output_tokens
    end = (
        EndOfText(min(end_of_text_ids), output_tokens)
        if end_of_text_ids and output_tokens is not None
        else None
    )
    memory = SimulatedMemory(blocks, BLOCK_SIZE)
    return Parts(
        model=ServedModel(
            name=folder.name,
            fingerprint=f"simulated-{folder.tokenizer_fingerprint()}",
            vocabulary_size=config.vocabulary_size,
            context_length=min(context_length, blocks * BLOCK_SIZE),
            end_of_text_ids=end_of_text_ids,
            kv_layout_id="simulated",
        ),
        pool=BlockPool(blocks, BLOCK_SIZE),
        runner=SimulatedRunner(vocabulary, memory, cost, end),
        memory=memory,
        device="simulated",
        tokenizer_fingerprint=folder.tokenizer_fingerprint(),
        grammars=grammars_of(
            folder,
            config.vocabulary_size,
            end_of_text_ids,
            settings.memory.grammar_cache_bytes,
        ),
    )
