"""Small tokenizers and templates, built as tests need them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from services.shared.model_folder import ModelFolder

CORPUS = ["The user said hello to the assistant, who said hello to the user and to the system."] * 3
ROLES = ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>")
CONCATENATED = (
    "{% for m in messages %}{{ '<|' + m.role + '|>\\n' + m.content + '<|end|>\\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% endif %}"
)


def byte_level() -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def added(texts: Sequence[str], **flags: bool) -> list[AddedToken]:
    return [AddedToken(text, normalized=False, **flags) for text in texts]


def write(
    path: Path,
    tokenizer: Tokenizer,
    *,
    template: str = CONCATENATED,
    config: dict[str, Any] | None = None,
) -> ModelFolder:
    path.mkdir(exist_ok=True)
    tokenizer.save(str(path / "tokenizer.json"))
    (path / "chat_template.jinja").write_text(template, encoding="utf-8")
    (path / "tokenizer_config.json").write_text(json.dumps(config or {}), encoding="utf-8")
    return ModelFolder(path)
