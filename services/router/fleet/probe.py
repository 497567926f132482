"""One probe: a generation of a token that shows whether a replica can generate."""

from __future__ import annotations

from collections.abc import Callable

from services.router.clock import Clock, Timer
from services.router.fleet.replica import BLAMED, Replica
from services.shared.errors import Code, ServiceError
from services.shared.stream.events import Cancel, CancelReason, Event, Failed, Finished
from services.shared.stream.generation import (
    CacheControl,
    Generation,
    PriorityClass,
    QualityOfService,
    Sampling,
    Stopping,
)
from services.shared.stream.source import Submission

REQUEST_ID = "probe"
PROMPT_IDS = (0,)

UNABLE = (*BLAMED, Code.DEADLINE_EXCEEDED)
"""Failures of a replica that cannot generate; others are answers of one that is alive."""


class Probe:
    """Goes to a replica by its session and ends once: passed, failed, or None when it was lost.

    A lost session is no verdict on what was asked.
    """

    def __init__(self, replica: Replica, on_end: Callable[[bool | None], None]) -> None:
        self._replica = replica
        self._on_end = on_end
        self._epoch = replica.epoch
        self._cancel: Cancel | None = None
        self._timer: Timer | None = None
        self._ended = False

    def send(self, clock: Clock, timeout_s: float) -> None:
        """It fails after `timeout_s` seconds without an answer."""
        submission = Submission(_generation(timeout_s), "", self._receive)
        try:
            self._cancel = self._replica.session.submit(submission)
        except ServiceError as error:
            self._receive(Failed.of(error))
        else:
            self._timer = clock.call_at(clock.time() + timeout_s, self._expire)

    def withdraw(self) -> None:
        """Nobody wants to know any more."""
        self._give_up(CancelReason.UNSPECIFIED, None)

    def _expire(self) -> None:
        self._give_up(CancelReason.DEADLINE, passed=False)

    def _give_up(self, reason: CancelReason, passed: bool | None) -> None:
        if not self._ended:
            if self._cancel is not None:
                self._cancel(reason)
            self._end(passed)

    def _receive(self, event: Event) -> None:
        if self._ended:
            return
        if isinstance(event, Finished):
            self._end(passed=True)
        elif isinstance(event, Failed):
            self._end(passed=event.code not in UNABLE)

    def _end(self, passed: bool | None) -> None:
        self._ended = True
        if self._timer is not None:
            self._timer.cancel()
        same = self._replica.load is not None and self._replica.epoch == self._epoch
        self._on_end(passed if same else None)


def _generation(timeout_s: float) -> Generation:
    return Generation(
        request_id=REQUEST_ID,
        prompt_ids=PROMPT_IDS,
        sampling=Sampling(temperature=0),
        stopping=Stopping(max_tokens=1, ignore_eos=True),
        quality_of_service=QualityOfService(
            priority_class=PriorityClass.BATCH, timeout_ms=int(timeout_s * 1000)
        ),
        cache=CacheControl(read=False, write=False),
    )
