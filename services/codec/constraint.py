"""What a request demands of an output's form, as one constraint for the engine."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from services.codec.answer_grammar import AnswerGrammar
from services.codec.conversation import Conversation, Tool, ToolChoice, ToolMode
from services.codec.lark import Lark
from services.codec.output.family import Family
from services.codec.request import (
    Grammar,
    JsonObject,
    JsonSchema,
    OutputFormat,
    Regex,
    Request,
)
from services.codec.tokenizer import ControlToken
from services.shared.stream.generation import Constraint, ConstraintKind


@dataclass(frozen=True, kw_only=True, slots=True)
class Vocabulary:
    """Tokens of a model: how many there are, and those that are no text."""

    size: int
    controls: Sequence[ControlToken]


def constraint_of(
    request: Request, family: Family, vocabulary: Vocabulary, *, is_reasoning: bool
) -> Constraint | None:
    """The constraint, or None where any output will do. Pure; takes as long as its schemas do.

    Calls follow the schemas of strict tools, also where text may come instead. Arguments of other
    tools follow their schemas as far as a grammar can tell.

    Args:
        request: with schemas that a grammar can express.
        family: of the model.
        vocabulary: of the model.
        is_reasoning: the prompt leaves the model's reasoning open.

    Raises:
        Unsupported: a call is demanded of a model that has no form of calls.
    """
    choice, tools = _callable(request)
    wanted = request.output_format
    reads = isinstance(request.prompt, Conversation)
    thinks = reads and (family.thinking is not None or family.channels is not None)
    if wanted is not None and not tools and not thinks:
        return _alone(wanted)
    lark = Lark(vocabulary.controls)
    grammar = AnswerGrammar(
        lark,
        family,
        tools,
        parallel=choice.parallel,
        any_token=f"<[0-{vocabulary.size - 1}]>",
    )
    answer = None
    if tools and choice.mode is ToolMode.REQUIRED:
        answer = grammar.calls()
    elif wanted is not None:
        answer = grammar.formatted(wanted)
    elif any(tool.strict for tool in tools):
        answer = grammar.free()
    if answer is None:
        return None
    thinking = grammar.thinking(request.reasoning.mode, is_open=is_reasoning)
    return Constraint(ConstraintKind.GRAMMAR, lark.source(f"{thinking} ({answer})"))


def may_constrain(request: Request) -> bool:
    """Whether there is anything of which a constraint could be made. At once."""
    prompt = request.prompt
    has_tools = isinstance(prompt, Conversation) and bool(prompt.tools)
    return has_tools or request.output_format is not None


def _callable(request: Request) -> tuple[ToolChoice, Sequence[Tool]]:
    """How to choose among which tools."""
    if not isinstance(request.prompt, Conversation):
        return ToolChoice(), ()
    choice = request.prompt.tool_choice
    if choice.mode is ToolMode.NONE:
        return choice, ()
    named = [tool for tool in request.prompt.tools if tool.name in choice.names]
    return choice, named if choice.names else request.prompt.tools


def _alone(wanted: OutputFormat) -> Constraint:
    match wanted:
        case JsonObject():
            return _schema({"type": "object"})
        case JsonSchema(schema):
            return _schema(schema)
        case Regex(pattern):
            return Constraint(ConstraintKind.REGEX, pattern)
        case Grammar(source):
            return Constraint(ConstraintKind.GRAMMAR, source)


def _schema(schema: Any) -> Constraint:
    return Constraint(ConstraintKind.JSON_SCHEMA, json.dumps(schema, ensure_ascii=False))
