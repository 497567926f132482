"""What a caller wishes of the model's reasoning, as variables of its template."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import replace

from services.codec.conversation import Conversation
from services.codec.request import ReasoningMode, ReasoningWish

_SWITCHES = ("enable_thinking", "thinking")
_EFFORT = "reasoning_effort"

# Protocols know more efforts than templates do.
_EFFORTS = {"none": "low", "minimal": "low", "xhigh": "high", "max": "high"}


def with_reasoning(
    conversation: Conversation, wish: ReasoningWish, names: AbstractSet[str]
) -> Conversation:
    """The conversation with the variables that its template looks at; the caller's own count more.

    Args:
        conversation: what is to be rendered.
        wish: of the same request.
        names: what the template uses.
    """
    kwargs: dict[str, object] = {}
    if wish.mode is not ReasoningMode.DEFAULT:
        kwargs |= dict.fromkeys(_SWITCHES, wish.mode is ReasoningMode.ON)
    if wish.effort is not None:
        kwargs[_EFFORT] = _EFFORTS.get(wish.effort, wish.effort)
    used = {name: value for name, value in kwargs.items() if name in names}
    if not used:
        return conversation
    rendering = conversation.rendering
    merged = used | dict(rendering.template_kwargs)
    return replace(conversation, rendering=replace(rendering, template_kwargs=merged))
