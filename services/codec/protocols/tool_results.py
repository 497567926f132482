"""Results of calls in the order of the calls, for templates that do not name them."""

from __future__ import annotations

from collections.abc import Iterable

from services.codec.conversation import Role, ToolCall, ToolResult, Turn


def in_call_order(turns: Iterable[Turn]) -> tuple[Turn, ...]:
    """Turns of results that follow one another are sorted; results without a call come last."""
    ordered: list[Turn] = []
    results: list[Turn] = []
    calls: list[str] = []
    for turn in turns:
        if turn.role is Role.TOOL:
            results.append(turn)
            continue
        ordered += sorted(results, key=lambda result: _rank(result, calls))
        ordered.append(turn)
        results = []
        calls = [part.call_id for part in turn.parts if isinstance(part, ToolCall)]
    return (*ordered, *sorted(results, key=lambda result: _rank(result, calls)))


def _rank(turn: Turn, calls: list[str]) -> int:
    ids = [part.call_id for part in turn.parts if isinstance(part, ToolResult)]
    return calls.index(ids[0]) if ids and ids[0] in calls else len(calls)
