"""Writes golden/smollm2.safetensors: what transformers computes, for the engine to agree with.

    PYTHONPATH=. python tests/engine/make_golden.py [MODEL_FOLDER]

The maths are transformers' own in fp32 with eager attention, on the fp16 weights of the folder.
The file holds, with P = 8 prompts, Q = 20 questions and K positions of a prompt:

    logits.fixed_ids            int32 [64]      token IDs whose logits are always recorded
    logits.<p>.prompt           int32 [n]       prompt IDs: raw text for even p, a chat for odd p
    logits.<p>.positions        int32 [K]       ascending indices into the prompt, the last is n - 1
    logits.<p>.top_ids          int32 [K, 64]   the most likely next tokens after each position
    logits.<p>.top_values       fp32  [K, 64]   their logits, descending
    logits.<p>.fixed_values     fp32  [K, 64]   the logits of logits.fixed_ids
    greedy.<q>.prompt           int32 [n]       a chat of one question, ready for the answer
    greedy.tokens               int32 [Q, 48]   greedy answers, which go on past end-of-text tokens
    greedy.gaps                 fp32  [Q, 48]   best minus second best logit where each was chosen

The file's metadata has `model` and `tokenizer`, the fingerprints of the folder it was made from.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from services.shared.model_folder import ModelFolder

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden" / "smollm2.safetensors"
TOP = 64
ANSWER_TOKENS = 48

LIGHTHOUSE = """The keeper of the lighthouse wrote down every ship. He noted the hour, the colour \
of the flag, the number of masts, and whether the crew waved. In forty years he filled 61 \
notebooks, and nobody ever asked to read them. When a storm took the roof in 1893, the rain came \
in on the shelves and the ink of the first 12 books ran together into one blue stain. He dried \
the pages on the stairs, all 178 steps of them, and began again from memory."""

FUNCTION = '''def merge(left: list[int], right: list[int]) -> list[int]:
    """Merges two sorted lists into one."""
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]


def sort(values: list[int]) -> list[int]:
'''

RAW = (
    "The capital of France is",
    "Die Straße ist naß; 東京は日本の首都です。 Привет, мир! 🙂🚀 3.14159",
    FUNCTION,
    f"{LIGHTHOUSE}\n\n{FUNCTION}\n# Notes\n\n- 1, 2, 3\n\t- tab\n\n{LIGHTHOUSE[:120]}",
)

CHATS: tuple[list[dict[str, str]], ...] = (
    [{"role": "user", "content": "Hi"}],
    [
        {"role": "system", "content": "You answer in one word."},
        {"role": "user", "content": "Which colour has the sky?"},
        {"role": "assistant", "content": "Blue."},
        {"role": "user", "content": "And grass?"},
    ],
    [{"role": "user", "content": f"Sum this up in one sentence:\n\n{LIGHTHOUSE}"}],
    [
        {"role": "user", "content": f"What does this do?\n\n```python\n{FUNCTION}```"},
        {"role": "assistant", "content": "It merges two sorted lists, then starts a sort."},
        {"role": "user", "content": "Finish the function `sort`, please."},
    ],
)

QUESTIONS = (
    "What is the capital of France?",
    "Explain photosynthesis to a child.",
    "Write a Python function that reverses a string.",
    "How many days does a leap year have?",
    "Name three rivers in Germany.",
    "What is 17 plus 25?",
    "Give me a recipe for pancakes.",
    "Who wrote Romeo and Juliet?",
    "Why is the sky blue?",
    "Translate 'good morning' into Spanish.",
    "What is the difference between a list and a tuple in Python?",
    "Tell me a short story about a dragon who is afraid of fire.",
    "What causes the tides?",
    "Write a haiku about autumn.",
    "How do I boil an egg?",
    "What does HTTP stand for?",
    "List the planets of the solar system in order.",
    "Is a tomato a fruit or a vegetable?",
    "Write an SQL query that counts the orders of each customer.",
    "What should I pack for a week in the mountains?",
)

Arrays = dict[str, NDArray[Any]]


class Reference:
    """The model and tokenizer of a folder, as transformers runs them."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self._model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager"
        )

    def raw(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text)["input_ids"]
        return ids

    def chat(self, messages: list[dict[str, str]]) -> list[int]:
        text: str = self._tokenizer.apply_chat_template(
            messages, add_generation_prompt=True, tokenize=False
        )
        return self.raw(text)

    def logits(self, prompt: list[int], positions: list[int]) -> torch.Tensor:
        """Logits [position, vocabulary] after each position."""
        logits: torch.Tensor = self._model(torch.tensor([prompt])).logits[0, positions]
        return logits

    def greedy(self, prompt: list[int]) -> tuple[list[int], list[float]]:
        """Tokens of an answer and the gap between the two best logits at each."""
        tokens: list[int] = []
        gaps: list[float] = []
        step, cache = prompt, None
        while len(tokens) < ANSWER_TOKENS:
            output = self._model(torch.tensor([step]), past_key_values=cache, use_cache=True)
            best = output.logits[0, -1].topk(2)
            tokens.append(int(best.indices[0]))
            gaps.append(float(best.values[0] - best.values[1]))
            step, cache = tokens[-1:], output.past_key_values
        return tokens, gaps


def logit_arrays(reference: Reference) -> Arrays:
    fixed = torch.arange(TOP) * 767  # spread over the vocabulary of 49,152
    arrays: Arrays = {"logits.fixed_ids": fixed.numpy().astype(np.int32)}
    prompts = [
        prompt
        for raw, chat in zip(RAW, CHATS, strict=True)
        for prompt in (reference.raw(raw), reference.chat(chat))
    ]
    for index, prompt in enumerate(prompts):
        last = len(prompt) - 1
        positions = sorted({0, 1, last // 4, last // 2, last - 1, last})
        logits = reference.logits(prompt, positions)
        top = logits.topk(TOP)
        arrays |= {
            f"logits.{index}.prompt": np.array(prompt, np.int32),
            f"logits.{index}.positions": np.array(positions, np.int32),
            f"logits.{index}.top_ids": top.indices.numpy().astype(np.int32),
            f"logits.{index}.top_values": top.values.numpy(),
            f"logits.{index}.fixed_values": logits[:, fixed].numpy(),
        }
    return arrays


def greedy_arrays(reference: Reference) -> Arrays:
    prompts = [reference.chat([{"role": "user", "content": question}]) for question in QUESTIONS]
    answers = [reference.greedy(prompt) for prompt in prompts]
    arrays: Arrays = {
        f"greedy.{index}.prompt": np.array(prompt, np.int32) for index, prompt in enumerate(prompts)
    }
    return arrays | {
        "greedy.tokens": np.array([tokens for tokens, _ in answers], np.int32),
        "greedy.gaps": np.array([gaps for _, gaps in answers], np.float32),
    }


def main() -> None:
    default = ROOT / ".cache/models/smollm2-135m-instruct"
    folder = ModelFolder(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
    reference = Reference(folder.path)
    with torch.inference_mode():
        arrays = logit_arrays(reference) | greedy_arrays(reference)
    GOLDEN.parent.mkdir(exist_ok=True)
    fingerprints = {
        "model": folder.model_fingerprint(),
        "tokenizer": folder.tokenizer_fingerprint(),
    }
    save_file(arrays, GOLDEN, metadata=fingerprints)


if __name__ == "__main__":
    main()
