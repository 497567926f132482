"""Texts of others as they may stand in a line, a row or a terminal."""

from __future__ import annotations


def plain(text: str, limit: int) -> str:
    """`text` as `escaped` has it; what is longer than `limit` characters is cut."""
    return escaped(text[:limit])[:limit]


def escaped(text: str) -> str:
    r"""`text` on one line, with whatever is not printable as an escape like `\n` or `\x1b`.

    Line ends, sequences that move a terminal's cursor and characters that turn the direction of
    writing stand for nothing any more.
    """
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode()
