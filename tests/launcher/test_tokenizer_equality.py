from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from services.shared.model_folder import ModelFolder
from tests.launcher.byte_pair_reference import BytePairReference

CORPUS = {
    "prose": "It's 5 o'clock; they'll say \"don't\", won't they? WE'RE I'd you've she's I'm",
    "code": "def f(x: int) -> str:\n    return f'{x!r:>8}'  # 0xFF\n\n\n\tif a<=b != c: ...\r\n",
    "json": '{"a": [1, 2.5e-10, null], "b\\n": "\\u00e9", "c": {"d": true}}',
    "chinese": "东京是日本的首都。你好、世界。價格是１２３元",
    "japanese": "これはテストです。カタカナとひらがな、漢字。",
    "korean": "안녕하세요 세계",
    "russian": "Привет, мир! Съешь ещё этих мягких французских булок",
    "arabic": "مرحبا بالعالم ١٢٣٤",
    "hindi": "नमस्ते दुनिया १२३",
    "thai": "สวัสดีชาวโลก",
    "emoji": "🙂🚀👩‍👩‍👧‍👦🏳️‍🌈🇩🇪 👍🏽 text🙂text",
    "combining": "e\u0301 n\u0303 \u0041\u030a Å ﬁ Ⅷ ½ ² ৳ ①",
    "digits": "0 1 12 123 1234567890 3.14159 1,000,000 2024-01-31 a1b2c3 v10 ٣ Ⅳ",
    "spaces": " a  b   c    d     e        f                                        g",
    "space ends": "   \n\n\n   \t\t\t  \r\n \u00a0 \u2003 \u3000 \u200b \ufeff end   ",
    "spaces before digits": "a 1  2   3    4\n5\n\n6 \n 7",
    "only spaces": " " * 100,
    "newlines": "\n" * 70 + "x" + "\n \n  \n   \n",
    "repeats": "a" * 300 + "=" * 200 + "ha" * 100 + "!?" * 50,
    "controls": "<|im_start|>user\nhi<|im_end|>\n<|endoftext|><|im_start|><|im_start",
    "near controls": "<|im_start |> <| im_end|> <|IM_END|> <repo_name> <reponame> <file_sep>x",
    "bytes without token": "a\x04b\x06\x13\x14\x16\x1dc \U00040000 \U0008ffff d\x00e\x7f",
    "empty": "",
}
# SmolLM2's default system text; these IDs stand in many programs that use the original tokenizer.
SYSTEM = (
    "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face"
    "<|im_end|>\n"
)
SYSTEM_IDS = [1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173, 3365, 3511, 308, 34519, 28, 7018]
SYSTEM_IDS += [411, 407, 19712, 8182, 2, 198]


@pytest.fixture(scope="module")
def tokenizer(model_folder: ModelFolder) -> Tokenizer:
    return Tokenizer.from_file(str(model_folder.file("tokenizer.json")))


@pytest.fixture(scope="module")
def reference(model_folder: ModelFolder) -> BytePairReference:
    return BytePairReference(model_folder.json("tokenizer.json"))


@pytest.mark.parametrize("text", CORPUS.values(), ids=CORPUS)
def test_ids_are_those_of_plain_byte_pair_encoding(
    text: str, tokenizer: Tokenizer, reference: BytePairReference
) -> None:
    assert tokenizer.encode(text).ids == reference.encode(text)


@settings(max_examples=300)
@given(
    # Characters that Python's Unicode does not know yet, another library may take for letters.
    st.text(st.characters(exclude_categories=["Cn", "Cs"]), max_size=60)
    | st.text(st.sampled_from("aT's1२Ⅷ \t\n\r\u00a0.<|é漢🙂\x04"), max_size=60)
)
def test_ids_of_any_text_are_those_of_plain_byte_pair_encoding(
    tokenizer: Tokenizer, reference: BytePairReference, text: str
) -> None:
    assert tokenizer.encode(text).ids == reference.encode(text)


def test_transformers_loads_the_folder_and_gives_the_same_ids(
    model_folder: ModelFolder, tokenizer: Tokenizer
) -> None:
    loaded = AutoTokenizer.from_pretrained(model_folder.path)
    for text in CORPUS.values():
        assert loaded(text)["input_ids"] == tokenizer.encode(text).ids
    assert (loaded.bos_token, loaded.eos_token) == ("<|im_start|>", "<|im_end|>")
    assert loaded.chat_template is not None


def test_default_system_text_has_the_ids_of_the_original(tokenizer: Tokenizer) -> None:
    assert tokenizer.encode(SYSTEM).ids == SYSTEM_IDS


def test_text_of_known_bytes_decodes_to_itself(tokenizer: Tokenizer) -> None:
    for name, text in CORPUS.items():
        if name != "bytes without token":
            ids = tokenizer.encode(text).ids
            assert tokenizer.decode(ids, skip_special_tokens=False) == text
