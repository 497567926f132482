"""Tokens a second of transformers' `generate`, the baseline of http_throughput."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from bench.load_tool import Shape

WARM_UP_TOKENS = 8


def generate_rate(folder: Path, shape: Shape) -> float:
    """Output tokens a second of one batch in fp32, from its prompts to its end."""
    import torch  # noqa: PLC0415  # the other side's process must not load it
    from transformers import AutoModelForCausalLM  # noqa: PLC0415  # likewise

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    ids = torch.randint(1000, model.config.vocab_size, (shape.streams, shape.prompt_tokens))
    _generate(model, ids, WARM_UP_TOKENS)
    began = time.perf_counter()
    _generate(model, ids, shape.output_tokens)
    return shape.streams * shape.output_tokens / (time.perf_counter() - began)


def _generate(model: Any, ids: Any, tokens: int) -> None:
    output = model.generate(
        ids,
        attention_mask=ids > 0,
        do_sample=False,
        min_new_tokens=tokens,
        max_new_tokens=tokens,
    )
    if output.shape[1] != ids.shape[1] + tokens:
        raise RuntimeError(f"expected {tokens} new tokens, got {output.shape[1] - ids.shape[1]}")
