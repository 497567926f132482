"""Who may wait, and what those are told who may not."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum

from services.router.admission.fair_queue import FairQueue
from services.router.admission.waiting import Waiting
from services.router.admission.waiting_line import WATCHED_S
from services.router.clock import Clock
from services.shared.errors import Overloaded

JITTER = 0.2
"""Refused callers are told to come again at different times, this share around the expected."""

MIN_RETRY_S = 1.0
MAX_RETRY_S = 60.0


class Refusal(StrEnum):
    """Why a generation may not wait."""

    FULL = "full"
    DISPLACED = "displaced"
    """A tenant with fewer that wait needed the place."""
    DEADLINE = "deadline"
    """It would have come too late."""


class WaitingLimit:
    """Keeps a queue within its bound and deadlines within reach.

    Args:
        queue: where they wait.
        clock: that of the deadlines.
        random: numbers from 0 to 1, for jitter.

    Attributes:
        refusals: since the start.
    """

    def __init__(self, queue: FairQueue, clock: Clock, random: Callable[[], float]) -> None:
        self._queue = queue
        self._clock = clock
        self._random = random
        self.refusals = dict.fromkeys(Refusal, 0)

    def make_way(self, newcomer: Waiting, returning: int) -> Waiting | None:
        """Who has to leave so that a newcomer may wait; None if there is a place for it.

        Args:
            newcomer: not in the queue.
            returning: tokens that go through its lane before all new ones.

        Raises:
            Overloaded: the newcomer may not wait.
        """
        displaced = None
        if self._queue.is_full:
            displaced = self._queue.displaceable_by(newcomer.demand)
            if displaced is None:
                raise self.full(newcomer, returning)
        deadline = newcomer.applicant.deadline
        if deadline is not None:
            self._check_deadline(newcomer, deadline, returning)
        return displaced

    def full(self, newcomer: Waiting, returning: int) -> Overloaded:
        """What is told to one that finds no place in the queue."""
        limit = self._queue.max_waiting
        message = f"at most {limit} generations wait for a replica, {limit} do"
        self.refusals[Refusal.FULL] += 1
        return self._overloaded(message, newcomer, returning)

    def displaced(self, waiting: Waiting, returning: int) -> Overloaded:
        """What is told to one that had to leave."""
        message = (
            f"at most {self._queue.max_waiting} generations wait for a replica, and a tenant with "
            f"fewer of them needed a place"
        )
        self.refusals[Refusal.DISPLACED] += 1
        return self._overloaded(message, waiting, returning)

    def _check_deadline(self, newcomer: Waiting, deadline: float, returning: int) -> None:
        wait_s = self._queue.expected_wait_s(newcomer, returning, WATCHED_S)
        left_s = deadline - self._clock.time()
        if wait_s is not None and wait_s > left_s:
            message = (
                f"the expected wait of {wait_s:.1f} s must be within the time that the generation "
                f"has left, {left_s:.1f} s"
            )
            self.refusals[Refusal.DEADLINE] += 1
            raise self._overloaded(message, newcomer, returning)

    def _overloaded(self, message: str, refused: Waiting, returning: int) -> Overloaded:
        wait_s = self._queue.expected_wait_s(refused, returning) or 0.0
        spread = 1 + JITTER * (2 * self._random() - 1)
        within = min(max(wait_s, MIN_RETRY_S / (1 - JITTER)), MAX_RETRY_S / (1 + JITTER))
        return Overloaded(message, retry_after_s=within * spread)
