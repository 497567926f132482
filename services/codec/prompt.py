"""A conversation to the token IDs of its prompt, such that no text can forge a control token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from services.codec.controls import Controls, Piece, mark
from services.codec.conversation import Conversation, Role
from services.codec.head import EncodedPrompt, head_pieces
from services.codec.manners import manners_of
from services.codec.output.families import family_of
from services.codec.output.family import Family
from services.codec.pieces import PieceCache
from services.codec.request import TextPrompt, TokenPrompt
from services.codec.self_test import SelfTest
from services.codec.template import RENDER_BUDGET, ChatTemplate
from services.codec.tokenizer import ControlToken, Tokenizer
from services.codec.turns import TemplateTurns, TurnStyle, check_text
from services.shared.errors import InvalidRequest
from services.shared.model_folder import ModelFolder


class PromptEncoder:
    """Applies the model's own chat template and tokenizer. Thread-safe; call it in worker threads.

    Control tokens in the text of a caller are broken before the template runs. The prompt is then
    cut at the control tokens that are still whole, which only the template can have written, and
    what lies between is encoded by a tokenizer that knows no control token.

    Args:
        folder: holds tokenizer.json, tokenizer_config.json and the chat template.
        cache_bytes: memory for pieces of text whose IDs are kept.
        family: how the model writes reasoning and calls; None: as template and vocabulary show.

    Raises:
        BadModelFolder: a file is missing or wrong, or the construction does not hold for it.
    """

    def __init__(
        self, folder: ModelFolder, *, cache_bytes: int, family: Family | None = None
    ) -> None:
        self.tokenizer = Tokenizer(folder)
        self._template = ChatTemplate(folder)
        self._controls = Controls(self.tokenizer.controls, self._template.literals)
        manners = manners_of(self._template)
        self.family = family or family_of(
            self._template.source,
            (control.text for control in self.tokenizer.controls),
            knows_tools=manners.tools,
        )
        style = TurnStyle(as_parts=self._template.wants_parts, manners=manners, family=self.family)
        self._turns = TemplateTurns(self._passed, style)
        self._end = mark()
        self.pieces = PieceCache(self._encoded, cache_bytes)
        SelfTest(self, self._template.name).run()

    @property
    def variables(self) -> frozenset[str]:
        """Names that the template uses."""
        return self._template.names

    def encode(self, conversation: Conversation, tenant: str = "") -> list[int]:
        """Token IDs of the prompt. Control tokens come from the template alone.

        Pieces are remembered and found for the tenant alone.

        Raises:
            InvalidRequest: text that cannot be encoded, or a conversation the template refuses.
        """
        return self.encode_with_head(conversation, tenant).ids

    def encode_with_head(self, conversation: Conversation, tenant: str = "") -> EncodedPrompt:
        """The prompt, and how much of it does not depend on what is said; raises as `encode`."""
        pieces = list(self._controls.split(self.render(conversation)))
        head = head_pieces(conversation, (piece.text for piece in pieces))
        # Control tokens are borders: what comes after one changes no ID before it.
        return EncodedPrompt(self._ids(pieces, tenant), len(self._ids(pieces[:head], tenant)))

    def encode_text(self, text: str, tenant: str = "") -> list[int]:
        """Token IDs of plain text; spelled control tokens stay text."""
        check_text(text, "text")
        segments = self.tokenizer.segments(text)
        known = self.pieces.ids(segments, tenant)
        return [token for segment in segments for token in known[segment]]

    def encode_raw(self, prompt: TextPrompt | TokenPrompt) -> list[int]:
        """Token IDs of a prompt without a template, with what the tokenizer begins every text with.

        Raises:
            InvalidRequest: text that cannot be encoded, or a prompt without a token.
        """
        if isinstance(prompt, TokenPrompt):
            ids = list(prompt.ids)
        else:
            check_text(prompt.text, "prompt")
            ids = self.tokenizer.encode_raw(prompt.text, parse_special=prompt.parse_special)
        if not ids:
            raise InvalidRequest("prompt must have at least one token", field="prompt")
        return ids

    def raw_text(self, prompt: TextPrompt | TokenPrompt) -> str:
        """The prompt as text; an incomplete character shows as U+FFFD."""
        if isinstance(prompt, TextPrompt):
            return prompt.text
        return b"".join(map(self.tokenizer.token_bytes, prompt.ids)).decode(errors="replace")

    def render(self, conversation: Conversation, *, budget: int = RENDER_BUDGET) -> str:
        """The prompt as the template writes it, control tokens of callers marked."""
        is_open = conversation.rendering.continue_final
        if is_open and (not conversation.turns or conversation.turns[-1].role != Role.ASSISTANT):
            raise InvalidRequest(
                "the last message must be the assistant's to be continued", field="messages"
            )
        variables = self._turns.variables(conversation, end=self._end if is_open else "")
        try:
            rendered = self._template.render(
                variables, add_generation_prompt=not is_open, budget=budget
            )
        except InvalidRequest as error:
            raise InvalidRequest(self.shown(error.message), field=error.field) from error
        return self._cut(rendered) if is_open else rendered

    def shown(self, rendered: str) -> str:
        """The rendered text without marks."""
        return self._controls.whole(rendered).replace(self._end, "")

    def _cut(self, rendered: str) -> str:
        """What comes before the end of the last message."""
        before, found, _ = rendered.rpartition(self._end)
        if not found:
            raise InvalidRequest(
                "the model's chat template does not show the last message", field="messages"
            )
        return before.replace(self._end, "")

    def _passed(self, text: str, field: str) -> str:
        check_text(text, field)
        return self._controls.broken(text)

    def _ids(self, pieces: Iterable[Piece], tenant: str) -> list[int]:
        parts: list[str | ControlToken] = []
        for piece in pieces:
            parts += self.tokenizer.segments(piece.text)
            if piece.control is not None:
                parts.append(piece.control)
        known = self.pieces.ids((part for part in parts if isinstance(part, str)), tenant)
        ids: list[int] = []
        for part in parts:
            if isinstance(part, str):
                ids.extend(known[part])
            else:
                ids.append(part.index)
        return ids

    def _encoded(self, pieces: Sequence[str]) -> list[list[int]]:
        """IDs of texts between control tokens; none of them may be a control token."""
        encoded = self.tokenizer.encode_all_plainly(pieces)
        if not all(map(self.tokenizer.forgeable_ids.isdisjoint, encoded)):
            raise InvalidRequest("text must not become a control token", field="messages")
        return encoded
