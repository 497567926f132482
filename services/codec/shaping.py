"""Turns as a template can show them, such that earlier turns never change when later ones come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from services.codec.conversation import (
    Conversation,
    Part,
    Role,
    Text,
    ToolCall,
    ToolResult,
    Turn,
)
from services.codec.manners import Manners
from services.codec.output.family import ToolText


@dataclass(frozen=True, slots=True)
class Placed:
    """A turn and which of the caller's it comes from."""

    turn: Turn
    at: int

    @property
    def is_result(self) -> bool:
        return any(isinstance(part, ToolResult) for part in self.turn.parts)

    def role_is(self, role: Role) -> bool:
        return self.turn.role is role

    def with_parts(self, parts: Iterable[Part], role: Role | None = None) -> Placed:
        return Placed(replace(self.turn, parts=tuple(parts), role=role or self.turn.role), self.at)

    def and_text(self, text: str) -> Placed:
        """With a paragraph more: texts are joined by a line end."""
        return self.with_parts((*self.turn.parts, Text(f"\n{text}")))


def shaped(
    conversation: Conversation, manners: Manners, tool_text: ToolText | None
) -> list[Placed]:
    """The turns; what the template cannot show becomes text of turns that it can."""
    turns = [part for at, turn in enumerate(conversation.turns) for part in _parted(turn, at)]
    turns = _answers_in_order(_results_first(turns))
    if not manners.tools and tool_text is not None:
        if conversation.tools:
            turns = _with_system(turns, tool_text.system(conversation.tools))
        turns = [_calls_as_text(turn, tool_text) for turn in turns]
        turns = _results_as_text(turns, tool_text)
    if not manners.later_system or not manners.system:
        turns = _folded(turns, manners)
    return turns if manners.repeated_users else _joined_users(turns)


def _parted(turn: Turn, at: int) -> Iterator[Placed]:
    """Each tool result alone, then the rest of the turn."""
    results = [part for part in turn.parts if isinstance(part, ToolResult)]
    if not results:
        yield Placed(turn, at)
        return
    for result in results:
        yield Placed(Turn(Role.TOOL, (result,)), at)
    rest = tuple(part for part in turn.parts if not isinstance(part, ToolResult))
    if rest:
        yield Placed(replace(turn, parts=rest), at)


def _results_first(turns: list[Placed]) -> list[Placed]:
    """System texts between calls and their results come after the results."""
    ordered: list[Placed] = []
    waiting: list[Placed] = []
    for placed in turns:
        if placed.role_is(Role.SYSTEM) and (waiting or _may_have_results(ordered)):
            waiting.append(placed)
            continue
        if not placed.is_result:
            ordered += waiting
            waiting = []
        ordered.append(placed)
    return ordered + waiting


def _may_have_results(turns: list[Placed]) -> bool:
    """Whether results may follow these turns."""
    return bool(turns) and (
        turns[-1].is_result or any(isinstance(part, ToolCall) for part in turns[-1].turn.parts)
    )


def _answers_in_order(turns: list[Placed]) -> list[Placed]:
    """Results that follow one another stand in the order of the calls that they answer."""
    order: dict[str, int] = {}
    ordered: list[Placed] = []
    for is_result, group in groupby(turns, key=lambda placed: placed.is_result):
        run = list(group)
        if is_result:
            run.sort(key=lambda placed: order.get(_call_id(placed), len(order)))
        else:
            ids = [
                p.call_id for placed in run for p in placed.turn.parts if isinstance(p, ToolCall)
            ]
            order = {call_id: number for number, call_id in enumerate(ids)}
        ordered += run
    return ordered


def _call_id(placed: Placed) -> str:
    return next(part.call_id for part in placed.turn.parts if isinstance(part, ToolResult))


def _with_system(turns: list[Placed], text: str) -> list[Placed]:
    if turns and turns[0].role_is(Role.SYSTEM):
        return [turns[0].and_text(text), *turns[1:]]
    return [Placed(Turn(Role.SYSTEM, (Text(text),)), 0), *turns]


def _calls_as_text(placed: Placed, tool_text: ToolText) -> Placed:
    calls = [part for part in placed.turn.parts if isinstance(part, ToolCall)]
    if not calls:
        return placed
    rest = [part for part in placed.turn.parts if not isinstance(part, ToolCall)]
    return placed.with_parts([*rest, Text(tool_text.calls(calls))])


def _results_as_text(turns: list[Placed], tool_text: ToolText) -> list[Placed]:
    """Results that follow one another are one turn of the user."""
    told: list[Placed] = []
    for is_result, group in groupby(turns, key=lambda placed: placed.is_result):
        run = list(group)
        if is_result:
            results = [part for placed in run for part in placed.turn.parts]
            texts = [
                Text(tool_text.result("\n".join(text.text for text in part.parts)))
                for part in results
                if isinstance(part, ToolResult)
            ]
            run = [run[0].with_parts(texts, Role.USER)]
        told += run
    return told


def _folded(turns: list[Placed], manners: Manners) -> list[Placed]:
    """System texts that cannot stand where they are become text of a neighbour.

    Those at the very beginning become one, before all else.
    """
    count = next((at for at, turn in enumerate(turns) if not turn.role_is(Role.SYSTEM)), len(turns))
    head = [_one_system(turns[:count])] if count else []
    folded: list[Placed] = head if manners.system else []
    waiting = [] if manners.system else [_text(placed) for placed in head]
    for placed in turns[count:]:
        if placed.role_is(Role.SYSTEM):
            if folded and _takes_text(folded[-1]):
                folded[-1] = _with_more(folded[-1], _text(placed))
            else:
                waiting.append(_text(placed))
        elif waiting and placed.role_is(Role.USER):
            texts = [Text(f"{text}\n") for text in waiting]
            folded.append(placed.with_parts([*texts, *placed.turn.parts]))
            waiting = []
        else:
            folded.append(placed)
    at = turns[-1].at if turns else 0
    return folded + [Placed(Turn(Role.USER, (Text(text),)), at) for text in waiting]


def _one_system(systems: list[Placed]) -> Placed:
    first = systems[0]
    for later in systems[1:]:
        first = first.and_text(_text(later))
    return first


def _takes_text(placed: Placed) -> bool:
    return placed.role_is(Role.USER) or placed.is_result


def _with_more(placed: Placed, text: str) -> Placed:
    if not placed.is_result:
        return placed.and_text(text)
    return placed.with_parts(
        replace(part, parts=(*part.parts, Text(f"\n{text}")))
        if isinstance(part, ToolResult)
        else part
        for part in placed.turn.parts
    )


def _text(placed: Placed) -> str:
    return "\n".join(part.text for part in placed.turn.parts if isinstance(part, Text))


def _joined_users(turns: list[Placed]) -> list[Placed]:
    joined: list[Placed] = []
    for placed in turns:
        if joined and placed.role_is(Role.USER) and joined[-1].role_is(Role.USER):
            joined[-1] = joined[-1].and_text(_text(placed))
        else:
            joined.append(placed)
    return joined
