"""Where long text may be cut such that its parts have the IDs of the whole."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

SEGMENT_CHARACTERS = 16_384
"""Smaller segments gain nothing; larger ones leave cores idle, and more of a grown text is new."""

_CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_FIRST = r"[^\r\n\p{L}\p{N}]?"

# Alternatives of patterns. Each of these sets takes every letter, whatever stands around it.
_WORDS = (
    {r" ?\p{L}+"},
    {rf"{_FIRST}\p{{L}}+"},
    {rf"{_FIRST}[\p{{L}}\p{{M}}]+"},
    {r"[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+"},
    {f"{_FIRST}{_UPPER}*{_LOWER}+", f"{_FIRST}{_UPPER}+{_LOWER}*"},
    {
        f"{_FIRST}{_UPPER}*{_LOWER}+{_CONTRACTION}?",
        f"{_FIRST}{_UPPER}+{_LOWER}*{_CONTRACTION}?",
    },
)
# Neither these nor those above take a space after a letter. None looks at what is before it; what
# looks at the character after it ends in white space, so never at a cut.
_KNOWN = frozenset().union(*_WORDS) | {
    _CONTRACTION,
    *_CONTRACTION[4:-1].split("|"),
    r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+""",
    "[一-龥\u3040-\u309f\u30a0-\u30ff]+",
    r"\p{N}",
    r"\p{N}+",
    r"\p{N}{1,3}",
    r" ?\p{N}+",
    r" ?[^\s\p{L}\p{N}]+",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*",
    r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
    r" ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*",
    r" ?[\p{P}\p{S}]+[\r\n]*",
    r"\s*[\r\n]+",
    r"\s+(?!\S)",
    r"\s+",
}


def segments(text: str, least: int = SEGMENT_CHARACTERS) -> Iterator[str]:
    """The text in parts, each cut between a letter and a space.

    All but the last have at least `least` characters. What is appended to the text changes no
    segment but the last.
    """
    start = 0
    at = text.find(" ", least)
    while at != -1:
        if text[at - 1].isalpha():
            yield text[start:at]
            start = at
            at += least - 1
        at = text.find(" ", at + 1)
    yield text[start:]


def may_cut(spec: Mapping[str, Any]) -> bool:
    """Whether segments have the IDs of the whole with a tokenizer that has this tokenizer.json.

    It must be one that splits text at each cut before its model sees it, by patterns that are known
    to: those of GPT-2, Llama 3, Qwen, o200k, Mistral, DeepSeek and their like.
    """
    added = spec.get("added_tokens") or ()
    return (
        spec.get("normalizer") in (None, {"type": "NFC"})
        and not (spec.get("model") or {}).get("dropout")
        and not any(token.get("single_word") for token in added)
        and _splits(spec.get("pre_tokenizer") or {})
    )


def _splits(step: Mapping[str, Any]) -> bool:
    """Whether each cut is a border after this step, and the rest of its work is the same."""
    match step.get("type"):
        case "Sequence":
            steps = step["pretokenizers"]
            return all(map(_bears_cuts, steps)) and any(map(_splits, steps))
        case "ByteLevel":
            return bool(step.get("use_regex", True))
        case _:
            alternatives = _alternatives(step)
            return _bears_cuts(step) and any(words <= alternatives for words in _WORDS)


def _bears_cuts(step: Mapping[str, Any]) -> bool:
    """Whether the step does to both sides of a cut what it does to the whole."""
    if step.get("type") in ("ByteLevel", "Digits"):
        return True
    manner = (step.get("behavior"), step.get("invert"))
    return manner in (("Isolated", False), ("Removed", True)) and bool(_alternatives(step))


def _alternatives(step: Mapping[str, Any]) -> set[str]:
    """The alternatives of the step's pattern; none if one of them is not known."""
    pattern = step.get("pattern")
    rest = pattern.get("Regex", "") if isinstance(pattern, dict) else ""
    found: set[str] = set()
    while rest:
        head = next((known for known in _KNOWN if f"{rest}|".startswith(f"{known}|")), None)
        if head is None:
            return set()
        found.add(head)
        rest = rest[len(head) + 1 :]
    return found
