"""What others have of a prompt, or compute of it, for the replica that goes on from there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A replica from which another one can fetch a prompt's blocks.

    Args:
        source: the replica that has them; None where there is none.
        tokens: of the prompt that who fetches need not compute, beyond those cached there.
        is_prefill: the source has not got all of them and is to compute the rest.
        cached_tokens: leading tokens of the prompt that the source has already.
        behind: a replica from which the source, too, can fetch what it would have to compute.
    """

    source: str | None = None
    tokens: int = 0
    is_prefill: bool = False
    cached_tokens: int = 0
    behind: str | None = None

    @property
    def peer(self) -> str | None:
        """The source, where it has them already."""
        return None if self.is_prefill else self.source

    @property
    def prefill(self) -> str | None:
        """The source, where it is to compute them."""
        return self.source if self.is_prefill else None

    def told(self) -> str:
        """What it is, for people; names no replica. Empty where nothing is offered."""
        if self.source is None:
            return ""
        return f"{self.tokens} {'prefilled by' if self.is_prefill else 'cached at'} another"


NO_OFFER = Offer()
