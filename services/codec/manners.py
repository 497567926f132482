"""What a chat template bears, found by what it makes of small conversations."""

from __future__ import annotations

from dataclasses import dataclass

from services.codec.template import LOAD_BUDGET, ChatTemplate
from services.shared.errors import InvalidRequest

_WORDS = ("8d21f0c4", "b7c03e95", "1fa6d7e2", "c90b4a13")


@dataclass(frozen=True, kw_only=True, slots=True)
class Manners:
    """What a template can show.

    Args:
        tools: definitions of tools.
        system: a system text before everything.
        later_system: a system text anywhere, in its place, all that is before it unchanged.
        repeated_users: turns of a user one after another.
    """

    tools: bool = True
    system: bool = True
    later_system: bool = True
    repeated_users: bool = True


def manners_of(template: ChatTemplate) -> Manners:
    chat = _render(template, "user", "assistant", "user")
    later = _render(template, "user", "assistant", "user", "system")
    return Manners(
        tools="tools" in template.names,
        system=_render(template, "system", "user") is not None,
        later_system=chat is not None and later is not None and later.startswith(chat),
        repeated_users=_render(template, "user", "user") is not None,
    )


def _render(template: ChatTemplate, *roles: str) -> str | None:
    """The conversation as it is shown, or None where something is missing or refused."""
    messages = [
        {
            "role": role,
            "content": [{"type": "text", "text": word}] if template.wants_parts else word,
        }
        for role, word in zip(roles, _WORDS, strict=False)
    ]
    variables = {"messages": messages, "tools": None}
    try:
        text = template.render(variables, add_generation_prompt=False, budget=LOAD_BUDGET)
    except InvalidRequest:
        return None
    return text if all(word in text for word in _WORDS[: len(roles)]) else None
