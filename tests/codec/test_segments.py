from __future__ import annotations

import asyncio
import json
import random
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre

from services.codec.conversation import Conversation, Role, Text, Turn
from services.codec.prompt import PromptEncoder
from services.codec.segments import SEGMENT_CHARACTERS, may_cut, segments
from services.shared.model_folder import ModelFolder
from tests.codec.small_model import write

_ENDINGS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_BLANKS = r"\s*[\r\n]+|\s+(?!\S)|\s+"
_MARKS = r" ?[^\s\p{L}\p{N}]+[\r\n]*"
_UPPER = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]"
_LOWER = r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
LLAMA3 = rf"{_ENDINGS}|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}|{_MARKS}|{_BLANKS}"
QWEN2 = LLAMA3.replace("{1,3}", "")
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"\s\p{L}\p", r"\s\p{L}\p{M}\p")
_SLASHES = _MARKS.replace(r"\n]", r"\n/]")
TEKKEN = rf"{_UPPER}*{_LOWER}+|{_UPPER}+{_LOWER}*|\p{{N}}|{_SLASHES}|{_BLANKS}"
O200K = (
    rf"{_UPPER}*{_LOWER}+{_ENDINGS}?|{_UPPER}+{_LOWER}*{_ENDINGS}?|\p{{N}}{{1,3}}"
    rf"|{_SLASHES}|{_BLANKS}"
)
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
DEEPSEEK = (
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"""
    rf"| ?[\p{{P}}\p{{S}}]+[\r\n]*|{_BLANKS}"
)
CJK = "[一-龥\u3040-\u309f\u30a0-\u30ff]+"


def split(pattern: str, behavior: str = "isolated", *, invert: bool = False) -> Any:
    return pre.Split(Regex(pattern), behavior, invert)


def then_bytes(*steps: Any) -> Any:
    return pre.Sequence([*steps, pre.ByteLevel(add_prefix_space=False, use_regex=False)])


KINDS = {
    "gpt2": pre.ByteLevel(add_prefix_space=False),
    "gpt2, space before": pre.ByteLevel(add_prefix_space=True),
    "gpt2, spelled": then_bytes(split(GPT2)),
    "smollm2": pre.Sequence(
        [pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False)]
    ),
    "llama3": then_bytes(split(LLAMA3)),
    "llama3, inverted": then_bytes(split(LLAMA3, "removed", invert=True)),
    "qwen2": then_bytes(split(QWEN2)),
    "qwen3.5": then_bytes(split(QWEN35)),
    "tekken": then_bytes(split(TEKKEN)),
    "o200k": then_bytes(split(O200K)),
    "deepseek": then_bytes(split(r"\p{N}{1,3}"), split(CJK), split(DEEPSEEK)),
}
_WORDS = """
a b The WORLD fooBar don't 'S 'll 1 234 ½ ² é é ça Ünï \u0958 नमस्ते ﷺ 日本 語 ひら 한국 ж Привет
. , ( ) _ - \U0001f469\u200d\U0001f467 \u200b \u02b0 \u017f \u01c5 \u0130 \u00aa \u1e9e \u212a
"""
FRAGMENTS = [*_WORDS.split(), "\u00a0", "\u3000"]
TEXTS = st.lists(
    st.one_of(st.sampled_from(FRAGMENTS), st.just(" "), st.sampled_from([" ", "\n", "\r\n", "\t"]))
    | st.characters(exclude_categories=["Cs"]),
    max_size=30,
).map("".join)


@cache
def trained(kind: str, *, nfc: bool) -> Tokenizer:
    """A tokenizer that merges whatever its pre-tokenizer leaves together."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = KINDS[kind]
    tokenizer.decoder = decoders.ByteLevel()
    if nfc:
        tokenizer.normalizer = normalizers.NFC()
    draw = random.Random(kind)  # noqa: S311 no secret
    words = [draw.choice(FRAGMENTS) + draw.choice(["", " ", " ", "\n"]) for _ in range(6_000)]
    trainer = trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=pre.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(["".join(words)], trainer)
    return tokenizer


def specification(tokenizer: Tokenizer) -> dict[str, Any]:
    spec: dict[str, Any] = json.loads(tokenizer.to_str())
    return spec


@pytest.mark.parametrize("nfc", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@given(text=TEXTS)
def test_segments_have_the_ids_of_the_whole(kind: str, nfc: bool, text: str) -> None:
    tokenizer = trained(kind, nfc=nfc)
    parts = list(segments(text, 1))
    assert "".join(parts) == text
    encoded = tokenizer.encode_batch_fast(parts, add_special_tokens=False)
    whole = tokenizer.encode(text, add_special_tokens=False).ids
    assert [token for part in encoded for token in part.ids] == whole


@pytest.mark.parametrize("nfc", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_tokenizers_that_split_at_each_cut_may_be_cut(kind: str, nfc: bool) -> None:
    assert may_cut(specification(trained(kind, nfc=nfc)))


OTHERS: dict[str, Any] = {
    "none": None,
    "metaspace": pre.Metaspace(),
    "bytes alone": pre.ByteLevel(use_regex=False),
    "digits alone": then_bytes(pre.Digits()),
    "numbers alone": then_bytes(split(r"\p{N}{1,3}")),
    "lower case alone": then_bytes(split(rf"{_UPPER}*{_LOWER}+|{_BLANKS}")),
    "letters with spaces": then_bytes(split(r"[\p{L} ]+|\s+")),
    "unknown before": then_bytes(split(r"[\p{L} ]+"), split(GPT2)),
    "looks back": then_bytes(split(rf"(?<=a) b|{GPT2}")),
    "merges": then_bytes(split(GPT2, "merged_with_next")),
    "matches lost": then_bytes(split(GPT2, "removed")),
    "text alone": then_bytes(pre.Split("ab", "isolated")),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_tokenizers_of_other_kinds_are_not_cut(kind: str) -> None:
    tokenizer = Tokenizer(models.BPE())
    if OTHERS[kind] is not None:
        tokenizer.pre_tokenizer = OTHERS[kind]
    assert not may_cut(specification(tokenizer))


def test_tokenizers_that_see_beyond_their_words_are_not_cut() -> None:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = KINDS["gpt2"]
    assert may_cut(specification(tokenizer))
    tokenizer.normalizer = normalizers.Prepend("_")
    assert not may_cut(specification(tokenizer))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.add_tokens([AddedToken("  ", single_word=True)])
    assert not may_cut(specification(tokenizer))
    dropping = Tokenizer(models.BPE(dropout=0.5))
    dropping.pre_tokenizer = KINDS["gpt2"]
    assert not may_cut(specification(dropping))


@given(text=TEXTS, more=TEXTS, least=st.integers(1, 9))
def test_appended_text_changes_the_last_segment_alone(text: str, more: str, least: int) -> None:
    parts = list(segments(text, least))
    assert list(segments(text + more, least))[: len(parts) - 1] == parts[:-1]
    assert all(len(part) >= least for part in parts[:-1])


def prose(characters: int) -> str:
    draw = random.Random(1)  # noqa: S311 no secret
    words = ["the", "quick", "brown", "fox's", "12345", "Straße", "日本語", "x=y;", "\n\n", "  "]
    return " ".join(draw.choice(words) for _ in range(characters // 5))[:characters]


@pytest.fixture(scope="module")
def encoder(model_folder: ModelFolder) -> PromptEncoder:
    return PromptEncoder(model_folder, cache_bytes=2**26)


def test_long_text_is_cut_and_its_ids_are_those_of_the_original(encoder: PromptEncoder) -> None:
    text = prose(200_000)
    assert len(encoder.tokenizer.segments(text)) > 200_000 // SEGMENT_CHARACTERS // 2
    expected = encoder.tokenizer.encode_reference(text)
    assert encoder.tokenizer.encode_plainly(text) == expected
    assert encoder.encode_text(text) == expected


def test_of_a_text_that_grows_the_end_alone_is_encoded_again(encoder: PromptEncoder) -> None:
    text = prose(150_000)
    first, second = (
        Conversation((Turn(Role.USER, (Text(said),)),)) for said in (text, f"{text} and more words")
    )
    encoder.encode(first)
    misses = encoder.pieces.misses
    ids = encoder.encode(second)
    assert encoder.pieces.misses - misses == 1
    assert ids == encoder.tokenizer.encode_reference(encoder.render(second))


def test_a_vocabulary_that_makes_control_tokens_of_text_is_not_cut(tmp_path: Path) -> None:
    tokenizer = trained("llama3", nfc=False)
    assert tokenizer.token_to_id("The") is not None
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.add_special_tokens([AddedToken("The", normalized=False)])
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    encoder = PromptEncoder(write(tmp_path, tokenizer, template=template), cache_bytes=0)
    text = "a The b " * SEGMENT_CHARACTERS
    assert encoder.tokenizer.segments(text) == [text]
    assert encoder.tokenizer.control_ids.isdisjoint(encoder.encode_text(text))


async def test_the_event_loop_runs_while_long_text_is_encoded(encoder: PromptEncoder) -> None:
    text = prose(1_500_000)
    began = last = time.perf_counter()
    encoding = asyncio.create_task(asyncio.to_thread(encoder.encode_text, text))
    longest = 0.0
    while not encoding.done():
        await asyncio.sleep(0)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    assert len(await encoding) > 100_000
    assert longest < (last - began) / 2
