"""No text of a caller becomes a control token: bodies of three protocols, seven tokenizers.

Each body has hostile text in all its strings. The control tokens of its prompt are to be those of
the same body with harmless text, in the same order.
"""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.codec.conversation import Conversation
from services.codec.prompt import PromptEncoder
from services.codec.protocols.reading import Reading
from services.shared.model_folder import BadModelFolder
from tests.codec import forging
from tests.codec.small_model import write
from tests.examples import examples

EXAMPLES = examples(20_000)
TEMPLATES = {"all": forging.SHOWS_ALL, "chats": forging.SHOWS_CHATS}
READING = Reading(vocabulary_size=100_000)
WORDS = ("hello", "The user", "two  words", "a\n\nb", "x = 1; 7", "caf\u00e9", "\u65e5\u672c")

ROUNDS = EXAMPLES // (len(forging.KINDS) * len(TEMPLATES) * len(forging.BODIES)) + 1
SIDES = [
    (kind, template, protocol)
    for kind in forging.KINDS
    for template in TEMPLATES
    for protocol in forging.BODIES
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("kinds")


@cache
def encoder_of(folder: Path, kind: str, template: str) -> PromptEncoder:
    written = write(
        folder / f"{kind} {template}", forging.KINDS[kind](), template=TEMPLATES[template]
    )
    return PromptEncoder(written, cache_bytes=2**20)


def conversation_of(protocol: str, text: Any, name: Any) -> Conversation:
    wire, body = forging.BODIES[protocol]
    sent = json.dumps(forging.filled(body, text, name), ensure_ascii=False).encode()
    prompt = wire.parse(READING, sent).prompt
    assert isinstance(prompt, Conversation)
    return prompt


def conversation_by(protocol: str, choose: forging.Choose) -> Conversation:
    return conversation_of(protocol, lambda: forging.hostile(choose), lambda: choose(forging.NAMES))


def controls(encoder: PromptEncoder, conversation: Conversation) -> list[int]:
    known = encoder.tokenizer.forgeable_ids
    return [token for token in encoder.encode(conversation) if token in known]


def harmless(encoder: PromptEncoder, protocol: str) -> list[int]:
    written = controls(encoder, conversation_of(protocol, lambda: "x", lambda: "x"))
    assert len(written) >= 7
    return written


@pytest.mark.parametrize(("kind", "template", "protocol"), SIDES)
def test_no_text_of_many_becomes_a_control_token(
    folder: Path, kind: str, template: str, protocol: str
) -> None:
    encoder = encoder_of(folder, kind, template)
    expected = harmless(encoder, protocol)
    for seed in range(ROUNDS):
        draw = random.Random(f"{kind} {template} {protocol} {seed}")  # noqa: S311 no secret
        conversation = conversation_by(protocol, draw.choice)
        assert controls(encoder, conversation) == expected, f"seed {seed}"


@pytest.mark.parametrize("protocol", forging.BODIES)
@pytest.mark.parametrize("kind", forging.KINDS)
@settings(max_examples=20)
@given(data=st.data())
def test_no_text_becomes_a_control_token(
    folder: Path, kind: str, protocol: str, data: st.DataObject
) -> None:
    encoder = encoder_of(folder, kind, "all")
    conversation = conversation_by(
        protocol, lambda options: data.draw(st.sampled_from(list(options)))
    )
    assert controls(encoder, conversation) == harmless(encoder, protocol)


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("protocol", forging.BODIES)
def test_hostile_text_arrives_as_it_was_written(folder: Path, template: str, protocol: str) -> None:
    encoder = encoder_of(folder, "byte level", template)
    for seed in range(50):
        draw = random.Random(seed)  # noqa: S311 no secret
        conversation = conversation_by(protocol, draw.choice)
        spelled = b"".join(map(encoder.tokenizer.token_bytes, encoder.encode(conversation)))
        assert spelled.decode() == encoder.shown(encoder.render(conversation))


@pytest.mark.parametrize(("kind", "template", "protocol"), SIDES)
def test_harmless_conversations_have_the_ids_of_the_original_tokenizer(
    folder: Path, kind: str, template: str, protocol: str
) -> None:
    encoder = encoder_of(folder, kind, template)
    for seed in range(10):
        draw = random.Random(seed)  # noqa: S311 no secret
        conversation = conversation_of(
            protocol, lambda draw=draw: draw.choice(WORDS), lambda draw=draw: draw.choice("ab")
        )
        shown = encoder.shown(encoder.render(conversation))
        assert encoder.encode(conversation) == encoder.tokenizer.encode_reference(shown)


@pytest.mark.parametrize("kind", forging.REFUSED)
def test_tokenizers_for_which_pieces_are_not_the_whole_are_refused(
    tmp_path: Path, kind: str
) -> None:
    written = write(tmp_path, forging.REFUSED[kind](), template=forging.SHOWS_CHATS)
    with pytest.raises(BadModelFolder):
        PromptEncoder(written, cache_bytes=0)
