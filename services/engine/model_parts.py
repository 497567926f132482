"""The parts of an engine that computes a real model."""

from __future__ import annotations

import torch

from services.engine.admission import ServedModel
from services.engine.blocks import BlockPool
from services.engine.fastest_drawing import fastest_drawing
from services.engine.grammar_compiler import grammars_of
from services.engine.memory import pool_blocks
from services.engine.model.block_bytes import BlockBytes
from services.engine.model.llama import LlamaModel
from services.engine.model_runner import ModelRunner
from services.engine.parts import BLOCK_SIZE, Parts, existing_folder, usable_context
from services.engine.sampler import Sampler
from services.engine.settings import Device, ExecutorSettings
from services.engine.stopping import Stopper
from services.engine.threads import shares_pool
from services.shared.config import BadConfig


def model_parts(settings: ExecutorSettings) -> Parts:
    """Loads the model and takes the memory of its KV pool.

    Raises:
        BadModelFolder: a file of the model is missing or wrong.
        BadConfig: the device is not there, or the pool would hold nothing.
    """
    device = _device(settings)
    folder = existing_folder(settings.model_path)
    model = LlamaModel.load(folder, device=device)
    blocks = pool_blocks(settings.memory, model.kv_bytes_per_block(BLOCK_SIZE), device)
    config = model.config
    context_length = usable_context(settings.context_length, config.context_length, blocks)
    end_of_text_ids = frozenset(config.eos_ids)
    drawing = fastest_drawing(device, torch.get_num_threads() if shares_pool() else 1)
    sampler = Sampler(Stopper(end_of_text_ids, context_length), drawing)
    kv_pool = model.allocate(blocks, BLOCK_SIZE)
    shape = f"{config.layers}x{config.kv_heads}x{config.head_dim}x{BLOCK_SIZE}"
    return Parts(
        model=ServedModel(
            name=folder.name,
            fingerprint=folder.model_fingerprint(),
            vocabulary_size=config.vocabulary_size,
            context_length=context_length,
            end_of_text_ids=end_of_text_ids,
            kv_layout_id=f"{str(model.dtype).removeprefix('torch.')}-{shape}",
        ),
        pool=BlockPool(blocks, BLOCK_SIZE),
        runner=ModelRunner(model, kv_pool, sampler),
        memory=BlockBytes(kv_pool),
        device=str(device),
        tokenizer_fingerprint=folder.tokenizer_fingerprint(),
        grammars=grammars_of(
            folder,
            config.vocabulary_size,
            end_of_text_ids,
            settings.memory.grammar_cache_bytes,
        ),
    )


def _device(settings: ExecutorSettings) -> torch.device:
    if settings.device is Device.CPU:
        return torch.device("cpu")
    if torch.cuda.is_available():
        return torch.device("cuda", settings.accelerator_group[0])
    if settings.device is Device.CUDA:
        raise BadConfig("executor.device must be cpu or auto where no CUDA device is, got cuda")
    return torch.device("cpu")
