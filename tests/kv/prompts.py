"""Prompts of token IDs that share no block."""

from __future__ import annotations


def prompt(number: int, tokens: int) -> list[int]:
    """Each number has its own."""
    return [1000 + (number * 7919 + at * 31) % 40_000 for at in range(tokens)]
