"""One output under a grammar of llguidance."""

from __future__ import annotations

from llguidance import LLMatcher

from services.shared.errors import InvalidRequest

MAX_REASON_CHARACTERS = 300


class GuidedMatcher:
    """A Matcher over one that is its own.

    An LLMatcher never raises for what a caller wrote: it enters an error state and stays there.
    """

    def __init__(self, matcher: LLMatcher) -> None:
        self._matcher = matcher
        self._allowed = b""

    @property
    def complete(self) -> bool:
        return self._matcher.is_stopped() and not self._matcher.is_error()

    def allowed(self) -> bytes:
        self._allowed = self._matcher.compute_bitmask()
        if self._matcher.is_error():
            raise self._too_complex()
        return self._allowed

    def accept(self, token_id: int) -> None:
        """Refuses what `allowed` left out; what it did not, fails only at a limit."""
        if self._matcher.consume_token(token_id):
            return
        at, bit = divmod(token_id, 8)
        if at < len(self._allowed) and self._allowed[at] >> bit & 1:
            raise self._too_complex()
        raise ValueError(f"token {token_id} is not allowed: {self._reason()}")

    def _too_complex(self) -> InvalidRequest:
        message = f"constraint is too complex to go on with: {self._reason()}"
        return InvalidRequest(message, field="constraint")

    def _reason(self) -> str:
        return first_lines(self._matcher.get_error())


def first_lines(text: str) -> str:
    """As much of an error of llguidance as tells the reason; its own state follows below it."""
    reason, _, _ = text.partition("<non-verbose/>")
    return " ".join(reason.split())[:MAX_REASON_CHARACTERS]
