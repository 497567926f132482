"""What a script is to ask, and the one tool that it has."""

from __future__ import annotations

import os
import sys
from typing import Any

MODEL = os.environ["MODEL"]
PROMPT = os.environ["PROMPT"]
SECRET = os.environ.get("SECRET")
"""What the tool tells; without it the plain question is asked, whole and streamed."""

MAX_TOKENS = 200
LIMITS: dict[str, Any] = {"max_tokens": MAX_TOKENS, "temperature": 0}
MESSAGES: list[dict[str, Any]] = [{"role": "user", "content": PROMPT}]
SCHEMA = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
ABOUT = "Tells what is known about a key."


def look_up(key: str) -> str:
    """Tells what is known about a key."""
    return f"{key}: {SECRET}"


def say(text: str | None) -> None:
    """Prints what the model said, which must be something."""
    if not text or not text.strip():
        raise SystemExit("the answer has no text")
    sys.stdout.write(text + "\n")
