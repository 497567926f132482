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


def template_kwargs(body: Fields) -> dict[str, Any]:
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
    return given


def reasoning_wish(
    kwargs: Mapping[str, Any], *, effort: str | None, thinks: bool | None = None, shown: bool = True
) -> ReasoningWish:
    """What the caller says of reasoning.

    Args:
        kwargs: the caller's own variables of the template, which count more.
        effort: `none` is not to think.
        thinks: whether the model is to think; None leaves it to the template.
        shown: whether the caller gets to see it.
    """
    own = kwargs.get("enable_thinking", kwargs.get("thinking"))
    if isinstance(own, bool):
        thinks = own
    elif thinks is None and effort == "none":
        thinks = False
    mode = ReasoningMode.DEFAULT
    if thinks is not None:
        mode = ReasoningMode.ON if thinks else ReasoningMode.OFF
    return ReasoningWish(mode=mode, effort=effort, shown=shown)
