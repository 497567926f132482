"""What a client was told, in a form that is equal for equal answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_NAMES = ("id", "created", "request_id")
"""What differs from request to request."""

_BY_CHANCE = ("logprob", "top_logprobs", "cached_tokens")
"""What depends on what else is computed at the time: last digits, and what outputs share."""

_ADDED = ("content", "arguments", "text", "partial_json", "token_ids")
"""What comes in pieces."""

_LEFT_OUT = frozenset((*_NAMES, *_BY_CHANCE))


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """An answer without its names and times.

    Args:
        status: of HTTP.
        told: a whole answer as it came. Of a stream the events in their order, for each choice on
            its own, where neighbours that only add to a text have become one.
        complete: whether it said that it is at its end.
        in_events: whether it came as a stream.
    """

    status: int
    told: Any
    complete: bool
    in_events: bool = False

    @property
    def tokens(self) -> int:
        """Of all outputs together, as its usage says."""
        return max(_usages(self.told), default=0)

    def texts(self) -> Mapping[str, str]:
        """All text of a stream by choice and kind, joined; empty of a whole answer."""
        joined: dict[str, str] = {}
        if self.in_events:
            for choice, events in self.told.items():
                for path, text in (part for event in events for part in _parts(event)[1].items()):
                    if isinstance(text, str):
                        place = f"{choice} {path[-1]}"
                        joined[place] = joined.get(place, "") + text
        return joined


def whole(status: int, text: str) -> Answer:
    return Answer(status=status, told=_unnamed(json.loads(text)), complete=status == 200)


def streamed(status: int, text: str) -> Answer:
    """Reads server-sent events of Chat Completions and of Messages."""
    if status != 200:
        return whole(status, text)
    frames = [frame for frame in text.split("\n\n") if frame]
    events = [_event(frame) for frame in frames if not frame.startswith((":", "event: ping"))]
    told: dict[str, list[Any]] = {}
    for event in events:
        _add(told.setdefault(_choice(event), []), event)
    last = told.get("", [None])[-1]
    complete = last == "[DONE]" or (isinstance(last, dict) and last.get("type") == "message_stop")
    return Answer(status=status, told=told, complete=complete, in_events=True)


def tokens_in(text: str) -> int:
    """How many tokens the frames of a stream name; it may end within one."""
    return sum(
        len(choice.get("token_ids", ()))
        for frame in text.split("\n\n")[:-1]
        if frame.startswith("data: {")
        for choice in _event(frame).get("choices", ())
    )


def _event(frame: str) -> Any:
    """The data of a frame; what cannot be read stands for itself."""
    data = frame.rpartition("data: ")[2]
    return _unnamed(json.loads(data)) if data.startswith("{") else data


def _choice(event: Any) -> str:
    choices = event.get("choices") if isinstance(event, dict) else None
    return str(choices[0]["index"]) if choices else ""


def _add(told: list[Any], event: Any) -> None:
    """Two neighbours that bring text, and differ in nothing else, are one."""
    if told:
        (frame, texts), (next_frame, more) = _parts(told[-1]), _parts(event)
        if frame == next_frame and any(texts.values()) and any(more.values()):
            told[-1] = _with(told[-1], {path: texts[path] + more[path] for path in texts})
            return
    told.append(event)


def _usages(value: Any) -> Iterator[int]:
    for key, at in _items(value) or ():
        if key in ("completion_tokens", "output_tokens"):
            yield at
        else:
            yield from _usages(at)


Path = tuple[str | int, ...]


def _parts(value: Any, path: Path = ()) -> tuple[Any, dict[Path, Any]]:
    """A value with gaps, and what stands in them: texts and tokens, by where they are."""
    if path and path[-1] in _ADDED and isinstance(value, str | list):
        return type(value).__name__, {path: value}
    items = _items(value)
    if items is None:
        return value, {}
    parts = {key: _parts(at, (*path, key)) for key, at in items}
    gaps = {path: text for _, texts in parts.values() for path, text in texts.items()}
    return {key: frame for key, (frame, _) in parts.items()}, gaps


def _with(value: Any, texts: Mapping[Path, Any], path: Path = ()) -> Any:
    """The value with other texts in its gaps."""
    if path in texts:
        return texts[path]
    items = _items(value)
    if items is None:
        return value
    filled = {key: _with(at, texts, (*path, key)) for key, at in items}
    return filled if isinstance(value, dict) else list(filled.values())


def _items(value: Any) -> list[tuple[str | int, Any]] | None:
    if isinstance(value, dict):
        return list(value.items())
    return list(enumerate(value)) if isinstance(value, list) else None


def _unnamed(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unnamed(at) for key, at in _uncached(value).items() if key not in _LEFT_OUT}
    if isinstance(value, list):
        return [_unnamed(at) for at in value]
    return value


def _uncached(value: dict[str, Any]) -> dict[str, Any]:
    """In Messages, what was cached is no part of the input tokens; here it is."""
    cached = value.get("cache_read_input_tokens")
    if cached is None:
        return value
    inputs = value["input_tokens"] + cached
    return {**value, "input_tokens": inputs, "cache_read_input_tokens": None}
