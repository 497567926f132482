"""Constraints waiting to be compiled, away from the event loop and from the step loop."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from services.engine.grammar import Grammars, Matcher
from services.engine.sequence import Sequence
from services.shared.errors import DeadlineExceeded, Internal, Overloaded, ServiceError
from services.shared.stream.events import Failed

TIMEOUT_S = 10.0
"""Nothing that is let in takes so long: who waits longer has others before it."""

BROKEN = Failed.of(Internal("internal error"))
FULL = Failed.of(Overloaded("too many constraints wait to be compiled"))
LATE = Failed.of(DeadlineExceeded("the deadline of the request passed"))

_log = logging.getLogger(__name__)

Compiling = asyncio.Future[Matcher]
Done = Callable[[Failed | None], None]


class GrammarQueue:
    """Gives sequences their matchers, one after the other, on a thread of its own."""

    def __init__(self, grammars: Grammars, timeout_s: float = TIMEOUT_S) -> None:
        self._grammars = grammars
        self._timeout_s = timeout_s
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="grammars")

    def put(self, sequence: Sequence, done: Done) -> Compiling:
        """Calls `done` on this event loop when the sequence has its matcher, or why it has none.

        Cancelling what is given back takes the sequence out of the queue; `done` is not called.
        """
        constraint = sequence.generation.constraint
        if constraint is None:
            raise ValueError("a sequence without a constraint needs no matcher")
        home = asyncio.get_running_loop()
        left_s = (sequence.deadline_ns - time.monotonic_ns()) / 1e9
        generated_ids = sequence.generation.generated_ids
        compiling = home.run_in_executor(
            self._thread, self._grammars.matcher, constraint, generated_ids, sequence.tenant
        )

        def give_up() -> None:
            if compiling.cancel():
                done(LATE if left_s < self._timeout_s else FULL)

        timer = home.call_later(min(left_s, self._timeout_s), give_up)

        def settle(ended: Compiling) -> None:
            timer.cancel()
            if not ended.cancelled():
                done(_give(sequence, ended))

        compiling.add_done_callback(settle)
        return compiling

    def close(self) -> None:
        """Forgets what waits; what is being compiled ends by itself."""
        self._thread.shutdown(wait=False, cancel_futures=True)


def _give(sequence: Sequence, compiled: Compiling) -> Failed | None:
    error = compiled.exception()
    if error is None:
        sequence.matcher = compiled.result()
        return None
    if isinstance(error, ServiceError):
        return Failed.of(error)
    fields = {"request_id": sequence.generation.request_id}
    _log.error("a constraint met a bug", exc_info=error, extra={"fields": fields})
    return BROKEN
