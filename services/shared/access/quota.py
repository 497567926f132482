"""One tenant's use of what it may: reserved before, settled with what it came to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from services.shared.access.bucket import Bucket
from services.shared.access.tenant_limits import TenantLimits
from services.shared.errors import RateLimited

REQUESTS = "requests per minute"
TOKENS = "tokens per minute"
GENERATIONS = "generations at a time"


@dataclass(slots=True)
class Reservation:
    """Tokens put aside for a request. `used` is what it came to so far, settled at its end."""

    tokens: int
    used: int = 0


@dataclass(slots=True)
class Totals:
    """Tokens since the beginning: when nothing runs, reserved = settled + refunded.

    What comes to more than was put aside is reserved then.
    """

    reserved: int = 0
    settled: int = 0
    refunded: int = 0


@dataclass(frozen=True, slots=True)
class Standing:
    """What a store tells of a tenant, over all processes: levels of buckets, generations.

    None is not limited.
    """

    requests: float | None
    tokens: float | None
    running: int


@dataclass(frozen=True, slots=True)
class Share:
    """One limit as its tenant is told of it. `full_in_s`: seconds until all of it is there."""

    limit: int
    remaining: int
    full_in_s: float


class Quota:
    """Of one tenant in one process.

    Args:
        limits: what it may use.
        now: seconds, from any beginning.

    Attributes:
        running: generations now.
        totals: of tokens.
        told_at: when a store last told what all processes use; None where none did.
    """

    def __init__(self, limits: TenantLimits, now: Callable[[], float]) -> None:
        self.limits = limits
        self.running = 0
        self.totals = Totals()
        self.told_at: float | None = None
        self._elsewhere = 0
        self._now = now
        self._requests = self._bucket(limits.requests_per_minute, None)
        self._tokens = self._bucket(limits.tokens_per_minute, None)

    def change(self, limits: TenantLimits) -> None:
        """Other limits from now on; what has them as before goes on as it stands."""
        self.limits = limits
        self._requests = self._bucket(limits.requests_per_minute, self._requests)
        self._tokens = self._bucket(limits.tokens_per_minute, self._tokens)

    @property
    def is_at_rest(self) -> bool:
        """Whether one that is made anew would be the same."""
        buckets = (self._requests, self._tokens)
        return not self.running and all(b is None or b.full_in_s <= 0 for b in buckets)

    @property
    def requests(self) -> Share | None:
        return _share(self._requests)

    @property
    def tokens(self) -> Share | None:
        return _share(self._tokens)

    def refusal(self) -> RateLimited | None:
        """Why a request for the shortest answer would be refused now; None while it would not."""
        return self.entry_refusal() or _too_soon(self._tokens, 1, TOKENS) or self._too_many(1)

    def entry_refusal(self) -> RateLimited | None:
        """Why any request would be refused now, of which nothing is ever given back."""
        return _too_soon(self._requests, 1, REQUESTS)

    def enter(self) -> None:
        """A request comes. Raises RateLimited when there were too many."""
        refusal = self.entry_refusal()
        if refusal is not None:
            raise refusal
        if self._requests is not None:
            self._requests.take(1)

    @contextmanager
    def reserve(self, tokens: int, generations: int) -> Iterator[Reservation]:
        """Puts tokens and places aside for as long as the block runs, then settles what was used.

        Args:
            tokens: what the request is expected to come to.
            generations: that it runs at a time.

        Raises:
            RateLimited: they are not there; then nothing was put aside.
        """
        refusal = _too_soon(self._tokens, tokens, TOKENS) or self._too_many(generations)
        if refusal is not None:
            raise refusal
        with self.hold(tokens, generations) as reservation:
            yield reservation

    @contextmanager
    def hold(self, tokens: int, generations: int) -> Iterator[Reservation]:
        """The same for who need not ask whether they are there."""
        self.running += generations
        self._put_aside(tokens)
        reservation = Reservation(tokens)
        try:
            yield reservation
        finally:
            self.running -= generations
            self._settle(reservation)

    def learn(self, standing: Standing) -> None:
        """Goes on from what a store knows of all processes."""
        if self._requests is not None and standing.requests is not None:
            self._requests.learn(standing.requests)
        if self._tokens is not None and standing.tokens is not None:
            self._tokens.learn(standing.tokens)
        self._elsewhere = max(0, standing.running - self.running)
        self.told_at = self._now()

    def forget(self) -> None:
        """Nothing is known of other processes any more."""
        self._elsewhere, self.told_at = 0, None

    def _put_aside(self, tokens: int) -> None:
        self.totals.reserved += tokens
        if self._tokens is not None:
            self._tokens.take(tokens)

    def _settle(self, reservation: Reservation) -> None:
        more = reservation.used - reservation.tokens
        if more > 0:
            self._put_aside(more)
        else:
            self.totals.refunded -= more
            if self._tokens is not None:
                self._tokens.give_back(-more)
        self.totals.settled += reservation.used

    def _too_many(self, generations: int) -> RateLimited | None:
        """One that wants more than all places gets them when it is alone."""
        limit = self.limits.max_concurrency
        running = self.running + self._elsewhere
        if limit is None or running + min(generations, limit) <= limit:
            return None
        return limit_reached(limit, GENERATIONS)

    def _bucket(self, per_minute: int | None, before: Bucket | None) -> Bucket | None:
        if per_minute is None:
            return None
        if before is not None and before.per_minute == per_minute:
            return before
        bucket = Bucket(per_minute, self._now)
        if before is not None:  # neither a present nor a loss for those who are in the middle
            bucket.take(round(per_minute * (1 - before.level / before.per_minute)))
        return bucket


def limit_reached(limit: int, what: str, wait_s: float | None = None) -> RateLimited:
    return RateLimited(f"the limit of {limit} {what} is reached", retry_after_s=wait_s)


def _too_soon(bucket: Bucket | None, amount: int, what: str) -> RateLimited | None:
    wait_s = 0.0 if bucket is None else bucket.wait_s(amount)
    if bucket is None or not wait_s:
        return None
    return limit_reached(bucket.per_minute, what, wait_s)


def _share(bucket: Bucket | None) -> Share | None:
    if bucket is None:
        return None
    return Share(bucket.per_minute, bucket.remaining, bucket.full_in_s)
