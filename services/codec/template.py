"""The model's own chat template, run unmodified within limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jinja2
from jinja2 import nodes

from services.codec.sandbox import Refused, Sandbox, literals
from services.shared.errors import InvalidRequest
from services.shared.model_folder import (
    CHAT_TEMPLATE,
    TOKENIZER_CONFIG,
    BadModelFolder,
    ModelFolder,
)

MAX_TEMPLATE_BYTES = 2**20
LOAD_BUDGET = 2**26
RENDER_BUDGET = 2**30
_SPECIAL = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token")

# What templates raise for conversations that they do not expect; the sandbox adds its own.
_TEMPLATE_ERRORS = (
    jinja2.TemplateError,
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)


class ChatTemplate:
    """A compiled chat template with the special tokens that it may write. Thread-safe.

    Raises:
        BadModelFolder: there is no template, or it is none.
    """

    def __init__(self, folder: ModelFolder) -> None:
        self.name, source = _source(folder)
        self.source = source
        self._special = _special_tokens(folder)
        self._sandbox = Sandbox()
        try:
            with self._sandbox.budget(LOAD_BUDGET):
                parsed = self._sandbox.parse(source)
                self.literals = tuple(literals(parsed))
                self.names = frozenset(node.name for node in parsed.find_all(nodes.Name))
                self._template = self._sandbox.from_string(source)
        except (*_TEMPLATE_ERRORS, SyntaxError) as error:
            raise BadModelFolder(f"{self.name} cannot be compiled: {error}") from error
        self.literals += tuple(self._special.values())
        self.wants_parts = self._probe()

    def render(
        self, variables: Mapping[str, Any], *, add_generation_prompt: bool, budget: int
    ) -> str:
        """The prompt as text.

        Raises:
            InvalidRequest: the template refuses or cannot render; its own message is passed on.
        """
        values = {**variables, "add_generation_prompt": add_generation_prompt, **self._special}
        try:
            with self._sandbox.budget(budget):
                return self._template.render(values)
        except Refused as error:
            raise InvalidRequest(
                f"the model's chat template refuses: {error}", field="messages"
            ) from error
        except _TEMPLATE_ERRORS as error:
            raise InvalidRequest(
                "the model's chat template cannot render this conversation", field="messages"
            ) from error

    def _probe(self) -> bool:
        """Whether a message's text must be a list of parts: found by what comes out."""
        text = "4f1d9b62"
        parts = [{"type": "text", "text": text}]
        for content, answer in ((text, False), (parts, True)):
            message = {"role": "user", "content": content}
            try:
                rendered = self.render(
                    {"messages": [message], "tools": None},
                    add_generation_prompt=True,
                    budget=LOAD_BUDGET,
                )
            except InvalidRequest:
                continue
            # Quoted, it is the list itself that was printed.
            if text in rendered and repr(text) not in rendered and f'"{text}"' not in rendered:
                return answer
        raise BadModelFolder(f"{self.name} must render a single message of a user")


def _source(folder: ModelFolder) -> tuple[str, str]:
    """Name of the file and text of the template."""
    if folder.has(CHAT_TEMPLATE):
        path = folder.file(CHAT_TEMPLATE)
        if path.stat().st_size > MAX_TEMPLATE_BYTES:
            raise BadModelFolder(f"{path} must have at most {MAX_TEMPLATE_BYTES} bytes")
        try:
            return str(path), path.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise BadModelFolder(f"{path} is not UTF-8: {error}") from error
    value = folder.json(TOKENIZER_CONFIG).get("chat_template")
    if isinstance(value, list):
        named = {item.get("name"): item.get("template") for item in value if isinstance(item, dict)}
        value = named.get("default")
    path = folder.file(TOKENIZER_CONFIG)
    if not isinstance(value, str) or len(value) > MAX_TEMPLATE_BYTES:
        raise BadModelFolder(f"{path} must have a chat_template up to {MAX_TEMPLATE_BYTES} bytes")
    return str(path), value


def _special_tokens(folder: ModelFolder) -> dict[str, str]:
    config = folder.json(TOKENIZER_CONFIG) if folder.has(TOKENIZER_CONFIG) else {}
    values = {name: config.get(name) for name in _SPECIAL}
    texts = {
        name: value.get("content") if isinstance(value, dict) else value
        for name, value in values.items()
    }
    return {name: text for name, text in texts.items() if isinstance(text, str)}
