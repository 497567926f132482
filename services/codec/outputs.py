"""How a model's outputs are read: its vocabulary, its family, and what a request wants of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from services.codec.constraint import Vocabulary, constraint_of
from services.codec.conversation import Conversation, ToolMode
from services.codec.cursor import Cursor, CursorParts
from services.codec.detokenizer import Detokenizer
from services.codec.filtering.screens import ScreenMaker
from services.codec.ledger import Ledger, TokenWish
from services.codec.output.calls import Callables
from services.codec.output.dialect import Dialect, State
from services.codec.output.family import Family
from services.codec.output.parser import OutputParser
from services.codec.request import Delivery, JsonObject, JsonSchema, Request
from services.codec.stops import StopMatcher
from services.codec.tokenizer import Tokenizer
from services.shared.stream.generation import Constraint

Tools = Mapping[str, Mapping[str, Any]]

MAX_TAIL = 16_384
"""Tokens at the end of a prompt that are searched for what it leaves open."""


class Outputs:
    """Makes the cursors of a model's outputs. Thread-safe.

    Args:
        tokenizer: of the model.
        family: how it writes.
        screens: what its outputs pass, if anything.
    """

    def __init__(
        self, tokenizer: Tokenizer, family: Family, screens: ScreenMaker | None = None
    ) -> None:
        self._tokenizer = tokenizer
        self._screens = screens
        self._dialect = Dialect(family, tokenizer.controls)

    @property
    def family(self) -> Family:
        return self._dialect.family

    def cursors(self, request: Request, prompts: Sequence[Sequence[int]]) -> list[Cursor]:
        """For each prompt one for each of the request's choices."""
        tools = self._tools(request)
        shown = self._shown(request.delivery, reads_calls=tools is not None)
        cursors: list[Cursor] = []
        for prompt_ids in prompts:
            tail = self._tail(prompt_ids) if self._dialect.thinks else ""
            for _ in range(request.choices):
                choice = len(cursors)
                parser = self._parser(request, tools, choice, tail)
                cursors.append(Cursor(self._parts(request, choice, shown, parser)))
        return cursors

    def constraint(self, request: Request, prompts: Sequence[Sequence[int]]) -> Constraint | None:
        """What the request demands of the form of its outputs; as slow as its schemas are long."""
        tail = self._tail(prompts[0]) if self._dialect.thinks else ""
        vocabulary = Vocabulary(
            size=self._tokenizer.vocabulary_size, controls=self._tokenizer.controls
        )
        is_reasoning = self._dialect.begun(tail) is State.REASONING
        return constraint_of(request, self.family, vocabulary, is_reasoning=is_reasoning)

    def _parser(
        self, request: Request, tools: Tools | None, choice: int, tail: str
    ) -> OutputParser | None:
        """None for outputs that are plain text."""
        if tools is None:
            return OutputParser(self._dialect, None, tail) if self._reasons(request) else None
        parallel = not isinstance(request.prompt, Conversation) or (
            request.prompt.tool_choice.parallel
        )
        callables = Callables(schemas=tools, parallel=parallel, choice=choice)
        return OutputParser(self._dialect, callables, tail)

    def _reasons(self, request: Request) -> bool:
        """Prompts without a template have outputs without a form."""
        return self._dialect.thinks and isinstance(request.prompt, Conversation)

    def _tools(self, request: Request) -> Tools | None:
        """Schemas of what may be called, by name; None where calls are not read."""
        prompt = request.prompt
        if self.family.calls is None or not isinstance(prompt, Conversation) or not prompt.tools:
            return None
        choice = prompt.tool_choice
        if choice.mode is ToolMode.NONE:
            return None
        return {
            tool.name: tool.schema
            for tool in prompt.tools
            if not choice.names or tool.name in choice.names
        }

    def _parts(
        self, request: Request, choice: int, shown: frozenset[int], parser: OutputParser | None
    ) -> CursorParts:
        ending = request.ending
        characters = None if parser is None else self._dialect.alphabet.characters
        is_json = isinstance(request.output_format, JsonObject | JsonSchema)
        return CursorParts(
            detokenizer=Detokenizer(self._tokenizer, shown=shown, characters=characters),
            matcher=StopMatcher(ending.stop) if ending.stop else None,
            include_stop=ending.include_stop,
            parser=parser,
            ledger=self._ledger(request.delivery),
            screens=None if self._screens is None else self._screens.screens(is_json=is_json),
            choice=choice,
        )

    def _ledger(self, delivery: Delivery) -> Ledger | None:
        wish = TokenWish(
            ids=delivery.token_ids or delivery.continuous_usage,
            likelihoods=delivery.top_logprobs is not None,
        )
        return Ledger(self._tokenizer, wish) if delivery.wants_tokens else None

    def _shown(self, delivery: Delivery, *, reads_calls: bool) -> frozenset[int]:
        """Control tokens that print; the markers of calls that are not read are text."""
        if delivery.show_control_tokens:
            return self._tokenizer.control_ids
        if reads_calls:
            return frozenset()
        return self._dialect.call_ids() - self._tokenizer.eos_ids

    def _tail(self, prompt_ids: Sequence[int]) -> str:
        """The prompt from its last control token on that is no marker."""
        characters = self._dialect.alphabet.characters
        borders = self._tokenizer.control_ids
        tail: list[int] = []
        for token in reversed(prompt_ids[-MAX_TAIL:]):
            if token in borders and token not in characters:
                break
            tail.append(token)
        detokenizer = Detokenizer(self._tokenizer, characters=characters)
        return "".join(map(detokenizer.push_one, reversed(tail)))
