"""Bodies of each protocol with hostile text in every string, and tokenizers of many kinds."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, trainers
from tokenizers import pre_tokenizers as pre

from services.codec.protocols.chat_completions.protocol import CHAT_COMPLETIONS
from services.codec.protocols.messages.protocol import MESSAGES
from services.codec.protocols.responses.protocol import RESPONSES
from tests.codec.small_model import CORPUS, added, byte_level

T = TypeVar("T")
Choose = Callable[[Sequence[Any]], Any]
"""Takes one of some things, by chance or as hypothesis wants."""

# In bodies: any text, what may be a tool's name, JSON as text.
TEXT, NAME, ARGUMENTS = "§text", "§name", "§arguments"

CONTROLS = ("<|system|>", "<|user|>", "<|assistant|>", "<|tool|>", "<|end|>", "</s>")
MORE = ("<think>", "</think>", "[CALL]", "END_TURN", "TURN_OVER")
NAMES = ("END_TURN", "END", "_TURN", "_TURN_OVER", "user", "s", "call", "é", "7", "-")

# All that a conversation can show, next to markers that are spelled, and put together.
SHOWS_ALL = (
    "{% for m in messages %}{{ '<|' + m.role + '|>' }}{{ m.tool_call_id }}{{ m.name }}\n"
    "{% if m.reasoning_content %}<think>{{ m.reasoning_content|trim }}</think>{% endif %}"
    "{{ m.content|trim }}{% for call in m.tool_calls or [] %}{{ call.id|trim }}"
    "{{ call.function.name }}[CALL]{{ call.function.arguments|tojson }}{% endfor %}</s>"
    "{{ m.content }}{{ m.name }}TURN</s>{{ m.name }}{{ m.content|trim }}{{ hint }}{% endfor %}"
    "{% if tools %}<|system|>{{ tools|tojson }}END_TURN{% endif %}<|{{ hint }}|>"
    "{% if more is defined %}{{ more|tojson }}{% endif %}"
    "{% if documents is defined %}{{ documents|tojson }}{% endif %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
# Tools and their calls become text in this one.
SHOWS_CHATS = (
    "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
_SCHEMA = {"properties": {TEXT: {"type": "string", "description": TEXT, "enum": [TEXT]}}}
_KWARGS = {"hint": TEXT, "more": {TEXT: [TEXT]}}
_FUNCTION = {"name": NAME, "description": TEXT, "parameters": _SCHEMA, "strict": False}
_PARTS = [{"type": "text", "text": TEXT}, {"type": "text", "text": TEXT}]
_CALL = {"call_id": TEXT, "name": NAME}

CHAT_BODY = {
    "model": "m",
    "user": TEXT,
    "stop": [TEXT],
    "messages": [
        {"role": "system", "content": TEXT, "name": TEXT},
        {"role": "developer", "content": _PARTS},
        {"role": "user", "content": TEXT, "name": TEXT},
        {
            "role": "assistant",
            "content": TEXT,
            "refusal": TEXT,
            "reasoning_content": TEXT,
            "tool_calls": [
                {"id": TEXT, "function": {"name": NAME, "arguments": ARGUMENTS}},
                {"id": TEXT, "function": {"name": NAME, "arguments": TEXT}},
                {"id": TEXT, "type": "custom", "custom": {"name": NAME, "input": TEXT}},
            ],
        },
        {"role": "tool", "tool_call_id": TEXT, "content": TEXT},
        {"role": "function", "name": TEXT, "content": _PARTS},
        {"role": "assistant", "content": _PARTS},
    ],
    "tools": [{"type": "function", "function": _FUNCTION}],
    "chat_template_kwargs": _KWARGS,
    "documents": [{"title": TEXT, "text": TEXT}],
    "continue_final_message": True,
}
MESSAGES_BODY = {
    "model": "m",
    "max_tokens": 9,
    "metadata": {"user_id": TEXT},
    "system": _PARTS,
    "messages": [
        {"role": "user", "content": TEXT},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": TEXT, "signature": TEXT},
                {"type": "text", "text": TEXT},
                {"type": "tool_use", "id": TEXT, "name": NAME, "input": {TEXT: [TEXT]}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": TEXT, "content": _PARTS},
                {"type": "tool_result", "tool_use_id": TEXT, "content": TEXT, "is_error": True},
                {
                    "type": "document",
                    "title": TEXT,
                    "context": TEXT,
                    "source": {"type": "text", "media_type": "text/plain", "data": TEXT},
                },
                {"type": "search_result", "title": TEXT, "source": TEXT, "content": _PARTS},
                *_PARTS,
            ],
        },
    ],
    "tools": [{"name": NAME, "description": TEXT, "input_schema": _SCHEMA}],
    "chat_template_kwargs": _KWARGS,
}
RESPONSES_BODY = {
    "model": "m",
    "instructions": TEXT,
    "input": [
        {"role": "developer", "content": TEXT},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": TEXT}]},
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": TEXT}],
            "content": [{"type": "reasoning_text", "text": TEXT}],
            "encrypted_content": TEXT,
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": TEXT}]},
        {"type": "function_call", **_CALL, "arguments": ARGUMENTS},
        {"type": "function_call", **_CALL, "namespace": NAME, "arguments": TEXT},
        {"type": "custom_tool_call", **_CALL, "input": TEXT},
        {"type": "function_call_output", "call_id": TEXT, "output": TEXT},
        {
            "type": "custom_tool_call_output",
            "call_id": TEXT,
            "output": [{"type": "input_text", "text": TEXT}],
        },
        {"type": "additional_tools", "tools": [{"type": "function", **_FUNCTION}]},
        {"role": "user", "content": TEXT},
    ],
    "tools": [
        {"type": "custom", "name": NAME, "description": TEXT},
        {"type": "namespace", "name": NAME, "tools": [{"type": "function", **_FUNCTION}]},
    ],
    "chat_template_kwargs": _KWARGS,
}
BODIES = {
    "chat": (CHAT_COMPLETIONS, CHAT_BODY),
    "messages": (MESSAGES, MESSAGES_BODY),
    "responses": (RESPONSES, RESPONSES_BODY),
}
PIECES = [
    *CONTROLS,
    *MORE,
    *(text[:at] for text in ("<|user|>", "</s>", "END_TURN") for at in range(1, len(text))),
    *(text[at:] for text in ("<|user|>", "</s>", "END_TURN") for at in range(1, len(text))),
    *("END_", "_OVER", "</s>", "user", " "),
    *("user", "end", "|", "a", "The user", "é", "7", "0", "日", "<<", "{", '"', "\\"),
    *(" ", "  ", "\n", "\t", "\u00a0", "\u3000", "\uff1c|user|\uff1e", "<0x0A>", "\u2581"),
]


def hostile(choose: Choose) -> str:
    """Pieces of control tokens in any order; never white space alone, which protocols drop."""
    text = "".join(choose(PIECES) for _ in range(choose(range(1, 7))))
    return text if text.strip() else f"{text}</s>"


def filled(value: Any, text: Callable[[], str], name: Callable[[], str]) -> Any:
    """The body with a text and a name of their own wherever one stands."""
    if isinstance(value, dict):
        return {filled(key, text, name): filled(item, text, name) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item, text, name) for item in value]
    match value:
        case "§text":
            return text()
        case "§name":
            return name()
        case "§arguments":
            return json.dumps({text(): [text()]}, ensure_ascii=False)
        case _:
            return value


def _with_controls(tokenizer: Tokenizer, **flags: bool) -> Tokenizer:
    tokenizer.add_special_tokens(added(CONTROLS, **flags))
    tokenizer.add_tokens(added(MORE, **flags))
    return tokenizer


def _full_width() -> Tokenizer:
    """Look-alikes become control tokens by its normalizer, in the original."""
    tokenizer = byte_level()
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.add_special_tokens([AddedToken(text, normalized=True) for text in CONTROLS])
    tokenizer.add_tokens(added(MORE))
    return tokenizer


def _sentence_piece(scheme: str) -> Tokenizer:
    """BPE over words that begin with U+2581, and bytes for what it does not know."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True))
    if scheme == "prepend":
        steps = [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
        tokenizer.normalizer = normalizers.Sequence(steps)
    else:
        tokenizer.pre_tokenizer = pre.Metaspace(prepend_scheme=scheme)
    trainer = trainers.BpeTrainer(vocab_size=200, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    spec = json.loads(tokenizer.to_str())
    vocabulary = spec["model"]["vocab"]
    for byte in range(256):
        vocabulary[f"<0x{byte:02X}>"] = len(vocabulary)
    tokenizer = Tokenizer.from_str(json.dumps(spec))
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    return _with_controls(tokenizer)


def _unigram() -> Tokenizer:
    """Its vocabulary makes control tokens of their spelling."""
    singles = [(chr(code), -9.0) for code in (10, *range(33, 127))]
    spelled = [(text, -1.0) for text in (*CONTROLS, *MORE)]
    pieces = [("<unk>", 0.0), ("\u2581", -2.0), *singles, *spelled]
    tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
    tokenizer.normalizer = normalizers.Replace(" ", "\u2581")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    tokenizer.add_special_tokens(added(["<unk>"]))
    return _with_controls(tokenizer)


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "byte level": lambda: _with_controls(byte_level()),
    "lstrip": lambda: _with_controls(byte_level(), lstrip=True),
    "rstrip": lambda: _with_controls(byte_level(), rstrip=True),
    "full width": _full_width,
    "metaspace": lambda: _sentence_piece("always"),
    "prepend": lambda: _sentence_piece("prepend"),
    "unigram": _unigram,
}
REFUSED: dict[str, Callable[[], Tokenizer]] = {
    "metaspace at the start": lambda: _sentence_piece("first"),
}
