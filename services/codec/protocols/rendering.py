"""What the caller may tell the chat template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from services.codec.protocols.fields import Fields, choice, free_object, items
from services.codec.request import ReasoningMode, ReasoningWish
from services.shared.errors import InvalidRequest

RESERVED = frozenset(
    {
        "messages",
        "tools",
        "add_generation_prompt",
        "continue_final_message",
        "chat_template",
        "bos_token",
        "eos_token",
        "unk_token",
        "pad_token",
        "raise_exception",
        "strftime_now",
    }
)
EFFORT = choice(
    {name: name for name in ("none", "minimal", "low", "medium", "high", "xhigh", "max")}
)


def template_kwargs(body: Fields, effort: str | None) -> dict[str, Any]:
    """Variables for the template; all of them are the caller's and as little trusted as text."""
    given = dict(body.optional("chat_template_kwargs", free_object) or {})
    for name in given:
        if name in RESERVED:
            raise InvalidRequest(
                f"chat_template_kwargs must not set {name}", field="chat_template_kwargs"
            )
    if body.optional("documents", items):
        given.setdefault(
            "documents", [free_object(item) for item in items(body.value("documents"))]
        )
    if effort is not None:
        given.setdefault("reasoning_effort", effort)
        if effort == "none":
            given.setdefault("enable_thinking", False)
    return given


def reasoning_wish(kwargs: Mapping[str, Any], *, shown: bool) -> ReasoningWish:
    """What the template is told, as a wish."""
    effort, thinks = kwargs.get("reasoning_effort"), kwargs.get("enable_thinking")
    mode = ReasoningMode.DEFAULT
    if isinstance(thinks, bool):
        mode = ReasoningMode.ON if thinks else ReasoningMode.OFF
    return ReasoningWish(mode=mode, effort=effort if isinstance(effort, str) else None, shown=shown)
