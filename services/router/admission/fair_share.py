"""What each of several has had, so that each gets its share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from services.router.admission.ranking import Ranking

K = TypeVar("K")

MAX_REMEMBERED = 2048


class FairShare(Generic[K]):
    """Start-time fair queueing (Goyal, Vin and Cheng, 1996): the least account is served next.

    An account grows by what was served, divided by the weight. One that begins to want begins at
    the account that was served last, so having wanted nothing gives no credit; nor does it help to
    stop wanting for a moment, for what is ahead of that is remembered. Of those that want nothing
    at most `MAX_REMEMBERED` are, the furthest ahead.

    Args:
        weight: the share of a key against the others'.
    """

    def __init__(self, weight: Callable[[K], float] = lambda _: 1.0) -> None:
        self._weight = weight
        self._now = 0.0
        self._wanting: dict[K, float] = {}
        self._idle: Ranking[K] = Ranking()

    def __getitem__(self, key: K) -> float:
        """The account of one that wants, or what it would begin with."""
        known = self._wanting.get(key)
        if known is not None:
            return known
        return self._idle.get(key, self._now)

    def __len__(self) -> int:
        """How many accounts are kept."""
        return len(self._wanting) + len(self._idle)

    def begin(self, key: K) -> None:
        """It wants to be served from now on."""
        self._wanting[key] = self[key]
        self._idle.remove(key)

    def end(self, key: K) -> None:
        """It wants no more for now."""
        account = self._wanting.pop(key)
        if self._wanting:
            self._remember(key, account)
        else:
            self._idle = Ranking()

    def serve(self, key: K, tokens: float, floor: float = 0.0) -> float:
        """Charges one that wants and is served as the least, and returns the account before.

        Args:
            key: who is served.
            tokens: what is served.
            floor: its account counts as at least this much.
        """
        start = max(self._wanting[key], floor)
        self._wanting[key] = start + tokens / self._weight(key)
        self._now = max(self._now, start)
        while (first := self._idle.first()) is not None and self._idle[first] <= self._now:
            self._idle.remove(first)
        return start

    def charge(self, key: K, tokens: float) -> None:
        """Corrects an account by what was really served, more or less.

        While nobody wants anything nothing need be shared and nothing is charged.
        """
        account = self[key] + tokens / self._weight(key)
        if key in self._wanting:
            self._wanting[key] = account
        elif self._wanting:
            self._remember(key, account)

    def lift(self, key: K, floor: float) -> None:
        """One that could not be served has no credit for that."""
        if key in self._wanting:
            self._wanting[key] = max(self._wanting[key], floor)

    def _remember(self, key: K, account: float) -> None:
        if account <= self._now:
            self._idle.remove(key)
            return
        self._idle.place(key, account)
        first = self._idle.first()
        if len(self._idle) > MAX_REMEMBERED and first is not None:
            self._idle.remove(first)
