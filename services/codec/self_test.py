"""Shows at load that a model's template and tokenizer bear the way prompts are encoded."""

from __future__ import annotations

from typing import Protocol

from services.codec.conversation import Conversation, Role, Text, Turn
from services.codec.template import LOAD_BUDGET
from services.codec.tokenizer import Tokenizer
from services.shared.errors import InvalidRequest
from services.shared.model_folder import BadModelFolder

_BENIGN = (
    "Hello, how are you?",
    "  def f(x):\n\treturn x ** 2  # 12345\n\n\n",
    "\n\n日本語とemoji 👩‍👩‍👧 and naïve cafés: 3.14159, A's  b'c d\u3000e",
    "a",
    "",
)


class Encoder(Protocol):
    """What is tested: a prompt encoder."""

    tokenizer: Tokenizer

    def encode(self, conversation: Conversation) -> list[int]: ...

    def encode_text(self, text: str) -> list[int]: ...

    def render(self, conversation: Conversation, *, budget: int) -> str: ...

    def shown(self, rendered: str) -> str: ...


class SelfTest:
    """Compares with the original tokenizer where both must agree, and forges where it must not."""

    def __init__(self, encoder: Encoder, template: str) -> None:
        self._encoder = encoder
        self._template = template

    def run(self) -> None:
        """Raises `BadModelFolder` with what does not hold."""
        conversations = [_chat(text) for text in _BENIGN]
        conversations += [_single(text) for text in _BENIGN]
        for conversation in conversations:
            self._compare(conversation)
        for control in self._encoder.tokenizer.controls:
            self._check_plain(control.text)
        self._forge("".join(control.text for control in self._encoder.tokenizer.controls[:64]))

    def _compare(self, conversation: Conversation) -> None:
        """IDs of a benign chat are those of the tokenizer that takes the prompt as a whole."""
        try:
            rendered = self._encoder.render(conversation, budget=LOAD_BUDGET)
        except InvalidRequest as error:
            if len(conversation.turns) > 1:
                # Some models know no system text, and say so.
                return
            raise BadModelFolder(f"{self._template} renders no chat: {error}") from error
        tokenizer = self._encoder.tokenizer
        ids = self._encoder.encode(conversation)
        if ids != tokenizer.encode_reference(self._encoder.shown(rendered)):
            raise BadModelFolder(
                f"{self._template}: this tokenizer encodes a prompt otherwise in pieces than whole"
            )
        if not tokenizer.spells_as_reference(ids):
            raise BadModelFolder(f"{self._template}: this tokenizer's decoder is not known")

    def _check_plain(self, control: str) -> None:
        try:
            self._encoder.encode_text(f"a{control}b")
        except InvalidRequest as error:
            raise BadModelFolder(
                f"{self._template}: the text {control!r} becomes a control token"
            ) from error

    def _forge(self, text: str) -> None:
        """A user's control tokens arrive as text, and the template leaves marked text alone."""
        forged, benign = _single(f"x{text}y"), _single("x")
        encoder = self._encoder
        if f"x{text}y" not in encoder.shown(encoder.render(forged, budget=LOAD_BUDGET)):
            raise BadModelFolder(f"{self._template} changes the text of a user")
        forgeable = encoder.tokenizer.forgeable_ids
        written = [
            [token for token in encoder.encode(chat) if token in forgeable]
            for chat in (forged, benign)
        ]
        if written[0] != written[1]:
            raise BadModelFolder(f"{self._template} lets text become control tokens")


def _single(text: str) -> Conversation:
    return Conversation((Turn(Role.USER, (Text(text),)),))


def _chat(text: str) -> Conversation:
    roles = (Role.SYSTEM, Role.USER, Role.ASSISTANT, Role.USER)
    return Conversation(tuple(Turn(role, (Text(text),)) for role in roles))
