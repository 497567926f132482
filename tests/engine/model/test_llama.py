"""The model computes the logits of transformers, however a prompt is cut and batched."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaConfig, LlamaForCausalLM

from services.engine.model.batch import Chunk
from services.engine.model.config import read_config
from services.engine.model.kv_pool import KvPool
from services.engine.model.llama import LlamaModel
from services.engine.model.weights import EMBEDDING, LM_HEAD, read_weights
from services.shared.model_folder import MANIFEST, BadModelFolder, ModelFolder
from tests.engine.model.tiny_folder import write_folder

TOLERANCE = 5e-3
GOLDEN = load_file(Path(__file__).parents[1] / "golden" / "smollm2.safetensors")
PROMPTS = [GOLDEN[f"logits.{index}.prompt"].tolist() for index in range(8)]
CPU = torch.device("cpu")


class Sequences:
    """Prompts that go through a model together, each in blocks of its own."""

    def __init__(self, model: LlamaModel, lengths: Sequence[int], block_size: int = 16) -> None:
        counts = [-(-length // block_size) for length in lengths]
        self._model = model
        self._pool: KvPool = model.allocate(sum(counts), block_size)
        free = list(range(sum(counts)))
        # Every other block from the end: a table is no range.
        self._tables = [[free.pop(-1 - len(free) // 2) for _ in range(n)] for n in counts]
        self.computed = [0] * len(counts)

    def step(self, parts: dict[int, list[int]]) -> torch.Tensor:
        """Computes the next tokens of the sequences in `parts`; the logits of each one's last."""
        chunks = [
            Chunk(tokens, self.computed[index], self._tables[index], wants_logits=True)
            for index, tokens in parts.items()
        ]
        for index, tokens in parts.items():
            self.computed[index] += len(tokens)
        return self._model.forward(chunks, self._pool)


@pytest.fixture(scope="module")
def model(model_folder: ModelFolder) -> LlamaModel:
    return LlamaModel.load(model_folder, device=CPU)


def compare(index: int, position: int, logits: torch.Tensor) -> None:
    """Holds the logits after `position` of a golden prompt, where the file has them."""
    at = (GOLDEN[f"logits.{index}.positions"] == position).nonzero().flatten()
    for row in at.tolist():
        for ids, values in (
            (GOLDEN[f"logits.{index}.top_ids"][row], GOLDEN[f"logits.{index}.top_values"][row]),
            (GOLDEN["logits.fixed_ids"], GOLDEN[f"logits.{index}.fixed_values"][row]),
        ):
            torch.testing.assert_close(logits[ids.long()], values, atol=TOLERANCE, rtol=0.0)


def test_a_prompt_in_one_chunk_gives_the_golden_logits(model: LlamaModel) -> None:
    for index, prompt in enumerate(PROMPTS):
        for position in GOLDEN[f"logits.{index}.positions"].tolist()[-3::2]:
            alone = Sequences(model, [len(prompt)])
            compare(index, position, alone.step({0: prompt[: position + 1]})[0])


@pytest.mark.parametrize(("size", "prompts"), [(7, PROMPTS), (1, PROMPTS[:6])])
def test_prompts_of_all_lengths_together_in_small_chunks_give_the_golden_logits(
    model: LlamaModel, size: int, prompts: list[list[int]]
) -> None:
    together = Sequences(model, [len(prompt) for prompt in prompts])
    compared = 0
    for start in range(0, max(map(len, prompts)), size):
        parts = {
            index: prompt[start : start + size]
            for index, prompt in enumerate(prompts)
            if start < len(prompt)
        }
        for index, logits in zip(parts, together.step(parts), strict=True):
            compare(index, together.computed[index] - 1, logits)
            compared += 1
    assert compared == sum(-(-len(prompt) // size) for prompt in prompts)


def test_greedy_answers_part_only_where_two_tokens_are_equally_good(model: LlamaModel) -> None:
    prompts = [GOLDEN[f"greedy.{index}.prompt"].tolist() for index in range(20)]
    answers, gaps = GOLDEN["greedy.tokens"], GOLDEN["greedy.gaps"]
    batch = Sequences(model, [len(prompt) + answers.shape[1] for prompt in prompts])
    alike = dict.fromkeys(range(20), 0)
    chosen = batch.step(dict(enumerate(prompts))).argmax(dim=1).tolist()
    for turn in range(answers.shape[1]):
        chosen_of = dict(zip(alike, chosen, strict=True))
        for index in [i for i, token in chosen_of.items() if token != answers[i, turn]]:
            assert gaps[index, turn] < TOLERANCE, f"answer {index} parts at token {turn}"
            del alike[index], chosen_of[index]
        chosen = batch.step({i: [t] for i, t in chosen_of.items()}).argmax(dim=1).tolist()


def test_logits_do_not_depend_on_chunks_and_neighbours_by_a_single_bit(model: LlamaModel) -> None:
    prompt, other = PROMPTS[4], PROMPTS[7]
    whole = Sequences(model, [len(prompt)]).step({0: prompt})[0]
    cut = Sequences(model, [len(prompt), len(other)])
    cut.step({0: prompt[:50], 1: other[:3]})
    cut.step({1: other[3:60], 0: prompt[50:-1]})
    assert torch.equal(cut.step({1: other[60:61], 0: prompt[-1:]})[1], whole)


@pytest.mark.parametrize(
    ("changes", "block_size"),
    [
        ({}, 16),
        ({}, 4),
        ({"head_dim": 24}, 16),
        ({"tie_word_embeddings": False, "num_key_value_heads": 6}, 16),
    ],
)
def test_other_shapes_agree_with_transformers(
    tmp_path: Path, changes: dict[str, Any], block_size: int
) -> None:
    folder = write_folder(tmp_path, **changes)
    reference: Any = LlamaForCausalLM(LlamaConfig.from_pretrained(tmp_path))
    reference.float().eval()
    weights = read_weights(folder, read_config(folder))
    reference.load_state_dict({LM_HEAD: weights[EMBEDDING], **weights})
    prompt = torch.randint(0, 100, (40,), generator=torch.Generator().manual_seed(1)).tolist()
    with torch.inference_mode():
        expected = reference(torch.tensor([prompt])).logits[0]
    sequence = Sequences(LlamaModel.load(folder, device=CPU), [40], block_size)
    for start, end in ((0, 17), (17, 39), (39, 40)):
        logits = sequence.step({0: prompt[start:end]})[0]
        torch.testing.assert_close(logits, expected[end - 1], atol=2e-4, rtol=1e-4)


def test_chunks_that_want_no_logits_give_none(tmp_path: Path) -> None:
    model = LlamaModel.load(write_folder(tmp_path), device=CPU)
    pool = model.allocate(2, 16)
    assert model.forward([Chunk([1, 2], 0, [0], wants_logits=False)], pool).shape == (0, 100)


def test_a_block_takes_the_bytes_that_are_told(tmp_path: Path) -> None:
    model = LlamaModel.load(write_folder(tmp_path), device=CPU)
    assert model.allocate(3, 16).cache.nbytes == 3 * model.kv_bytes_per_block(16)


def test_a_file_that_is_not_what_the_manifest_says_stops_the_load(tmp_path: Path) -> None:
    folder = write_folder(tmp_path)
    wrong = '{"files": {"model.safetensors": {"size": 1, "sha256": ""}}}'
    (tmp_path / MANIFEST).write_text(wrong)
    with pytest.raises(BadModelFolder, match=r"model\.safetensors must have 1 bytes"):
        LlamaModel.load(folder, device=CPU)
