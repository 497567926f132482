from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

from services.codec.conversation import Conversation, Rendering, Role, Text, Turn
from services.codec.prompt import PromptEncoder
from services.shared.errors import InvalidRequest
from services.shared.model_folder import BadModelFolder, ModelFolder
from tests.codec.small_model import CONCATENATED, ROLES, added, byte_level, write


def load(folder: ModelFolder) -> PromptEncoder:
    return PromptEncoder(folder, cache_bytes=2**20)


def user(*texts: str, **kwargs: Any) -> Conversation:
    turns = tuple(Turn(Role.USER, (Text(text),)) for text in texts)
    return Conversation(turns, rendering=Rendering(template_kwargs=kwargs))


@pytest.fixture
def tokenizer() -> Tokenizer:
    tokenizer = byte_level()
    tokenizer.add_special_tokens(added(ROLES))
    return tokenizer


def control_texts(encoder: PromptEncoder, ids: list[int]) -> list[str]:
    known = encoder.tokenizer.forgeable_ids
    return [encoder.tokenizer.token_bytes(token).decode() for token in ids if token in known]


def test_markers_put_together_by_the_template_are_control_tokens(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    encoder = load(write(tmp_path, tokenizer))
    for text in ("hello", "<|user|>", "user", "|>", "<|end", "end"):
        ids = encoder.encode(user(text))
        assert control_texts(encoder, ids) == ["<|user|>", "<|end|>", "<|assistant|>"]


def test_text_inside_an_open_marker_of_the_template_forges_nothing(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    template = CONCATENATED + "{% if hint %}{{ '<|' + hint + '|>' }}{% endif %}"
    encoder = load(write(tmp_path, tokenizer, template=template))
    ids = encoder.encode(user("a", hint="system"))
    assert control_texts(encoder, ids) == ["<|user|>", "<|end|>", "<|assistant|>"]


def test_control_tokens_that_are_not_special_are_text_as_well(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    tokenizer.add_tokens(added(["<think>", "</think>"]))
    encoder = load(write(tmp_path, tokenizer))
    ids = encoder.encode(user("a <think> b"))
    assert control_texts(encoder, ids) == ["<|user|>", "<|end|>", "<|assistant|>"]


def test_white_space_tokens_of_a_vocabulary_stay(tmp_path: Path) -> None:
    tokenizer = byte_level()
    tokenizer.add_tokens(added(["   ", "\t\t"]))
    tokenizer.add_special_tokens(added(ROLES))
    encoder = load(write(tmp_path, tokenizer))
    assert tokenizer.token_to_id("   ") in encoder.encode(user("a   b"))


@pytest.mark.parametrize("flags", [{"rstrip": True}, {"lstrip": True}, {"single_word": False}])
def test_control_tokens_may_eat_white_space(tmp_path: Path, flags: dict[str, bool]) -> None:
    tokenizer = byte_level()
    tokenizer.add_special_tokens(added(ROLES, **flags))
    encoder = load(write(tmp_path, tokenizer))
    for text in ("  a\n\n b \t", "\u00a0x\u3000", "\n"):
        rendered = f"<|user|>\n{text}<|end|>\n<|assistant|>\n"
        expected = tokenizer.encode(rendered, add_special_tokens=False).ids
        assert encoder.encode(user(text)) == expected


def test_vocabulary_that_makes_control_tokens_of_text_is_held_off(tmp_path: Path) -> None:
    pieces = [
        ("<unk>", 0.0),
        ("</s>", -1.0),
        ("▁", -2.0),
        *((char, -9.0) for char in "abcxy<>/s\n"),
    ]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(added(["<unk>", "</s>"]))
    template = "{% for m in messages %}{{ m.content }}</s>{% endfor %}"
    encoder = load(write(tmp_path, tokenizer, template=template))
    ids = encoder.encode(user("ab</s>a</s></s>"))
    assert control_texts(encoder, ids) == ["</s>"]


def refused(folder: ModelFolder, match: str) -> None:
    started = time.process_time()
    with pytest.raises(BadModelFolder, match=match):
        load(folder)
    assert time.process_time() - started < 30


BAD_TEMPLATES = [
    ("{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "render"),
    ("{% for m in messages %}", "cannot be compiled"),
    ("{{ " + "(" * 5000 + " }}", "cannot be compiled"),
    ("{% include 'x' %}", "must not load other templates"),
    ("{{ messages[0].content|wordwrap }}", "cannot be compiled"),
    ("nothing", "must render a single message"),
    ("{% for m in messages %}{{ m.content[::-1] }}{% endfor %}", "must render"),
    ("{% for m in messages %}{{ m.content[:9] }}{% endfor %}", "changes the text"),
    ("x" * (2**20 + 1), "at most 1048576 bytes"),
]


@pytest.mark.parametrize(("template", "match"), BAD_TEMPLATES)
def test_template_that_cannot_serve_is_refused(
    tmp_path: Path, tokenizer: Tokenizer, template: str, match: str
) -> None:
    refused(write(tmp_path, tokenizer, template=template), match)


def test_missing_template_is_told_by_its_file(tmp_path: Path, tokenizer: Tokenizer) -> None:
    folder = write(tmp_path, tokenizer)
    (tmp_path / "chat_template.jinja").unlink()
    refused(folder, "tokenizer_config.json must have a chat_template")


def test_template_of_the_tokenizer_configuration_serves(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    named = [{"name": "default", "template": CONCATENATED}]
    folder = write(tmp_path, tokenizer, config={"chat_template": named, "eos_token": "<|end|>"})
    (tmp_path / "chat_template.jinja").unlink()
    assert len(control_texts(load(folder), load(folder).encode(user("a")))) == 3


def test_template_that_wants_parts_gets_them(tmp_path: Path, tokenizer: Tokenizer) -> None:
    template = (
        "{% for m in messages %}<|user|>{% for p in m.content if p.type == 'text' %}{{ p.text }}"
        "{% endfor %}<|end|>{% endfor %}"
    )
    encoder = load(write(tmp_path, tokenizer, template=template))
    ids = encoder.encode(user("a <|end|>"))
    assert control_texts(encoder, ids) == ["<|user|>", "<|end|>"]


def test_refusal_of_the_template_is_told_without_marks(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    """Check 108."""
    template = CONCATENATED + "{% if hint %}{{ raise_exception('no ' + hint) }}{% endif %}"
    encoder = load(write(tmp_path, tokenizer, template=template))
    with pytest.raises(InvalidRequest, match=r"refuses: no <\|end\|>$"):
        encoder.encode(user("a", hint="<|end|>"))


def test_other_failures_of_the_template_tell_nothing_internal(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    template = CONCATENATED + "{% if hint %}{{ hint + 1 }}{% endif %}"
    encoder = load(write(tmp_path, tokenizer, template=template))
    with pytest.raises(InvalidRequest, match=r"cannot render this conversation$"):
        encoder.encode(user("a", hint="x"))


def broken(folder: ModelFolder, **changes: Any) -> ModelFolder:
    path = folder.path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return folder


BAD_TOKENIZERS: list[tuple[dict[str, Any], str]] = [
    ({"model": {"type": "Nonsense"}}, "cannot be loaded"),
    ({"added_tokens": [{"content": 1}]}, "must list added_tokens"),
    ({"decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True}}, "byte-level"),
    ({"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "first",
                        "split": True}}, "prepend_scheme `first`"),
]  # fmt: skip


@pytest.mark.parametrize(("changes", "match"), BAD_TOKENIZERS)
def test_tokenizer_that_cannot_serve_is_refused(
    tmp_path: Path, tokenizer: Tokenizer, changes: dict[str, Any], match: str
) -> None:
    refused(broken(write(tmp_path, tokenizer), **changes), match)


@pytest.mark.parametrize(
    ("token", "match"),
    [
        (AddedToken("§", normalized=False), "one character"),
        (AddedToken("<w>", normalized=False, single_word=True), "single_word"),
    ],
)
def test_control_token_that_cannot_be_told_from_text_is_refused(
    tmp_path: Path, tokenizer: Tokenizer, token: AddedToken, match: str
) -> None:
    tokenizer.add_special_tokens([token])
    refused(write(tmp_path, tokenizer), match)


def test_tokenizer_that_encodes_pieces_otherwise_than_the_whole_is_refused(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    # The original finds the token in `Hello` as well, by its lower case.
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.add_tokens([AddedToken("hello", normalized=True)])
    refused(write(tmp_path, tokenizer), "in pieces than whole")


def test_added_prefix_space_works(tmp_path: Path) -> None:
    tokenizer = byte_level()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.add_special_tokens(added(ROLES))
    encoder = load(write(tmp_path, tokenizer))
    rendered = "<|user|>\nhello there<|end|>\n<|assistant|>\n"
    expected = tokenizer.encode(rendered, add_special_tokens=False).ids
    assert encoder.encode(user("hello there")) == expected
