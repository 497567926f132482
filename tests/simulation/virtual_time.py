"""An event loop whose time goes on only when nothing is left to do, and the clocks that show it."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context
from functools import partial
from typing import TypeVar, TypeVarTuple, Unpack

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

START_S = 1000.0
"""Where time begins; not at 0, so that a time is never mistaken for none."""

WALL_S = 1_800_000_000.0

THREAD_S = 0.0003
"""How long a worker thread takes for what it is given."""


class _NothingToWaitFor:
    """Stands where a selector waits for sockets: it lets the time pass instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> list[object]:
        if timeout is None:
            raise RuntimeError("everything waits and nothing will ever happen")
        self._loop.now += timeout
        return []


class _Timer(asyncio.TimerHandle):
    """Of those of one moment the first asked for comes first."""

    _scheduled: bool

    def __init__(
        self,
        when: float,
        number: int,
        callback: Callable[[], object],
        loop: asyncio.AbstractEventLoop,
        context: Context | None,
    ) -> None:
        super().__init__(when, callback, (), loop, context)
        self._order = (when, number)

    def __lt__(self, other: object) -> bool:
        return isinstance(other, _Timer) and self._order < other._order


class VirtualLoop(asyncio.BaseEventLoop):
    """Knows no sockets, threads or processes; a second passes as soon as nobody needs it.

    Attributes:
        wall_offset_s: how far the wall clock has been set forward.
    """

    _scheduled: list[asyncio.TimerHandle]

    def __init__(self) -> None:
        super().__init__()
        self.now = START_S
        self.wall_offset_s = 0.0
        self._count = 0
        self._selector = _NothingToWaitFor(self)

    def time(self) -> float:
        return self.now

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        self._count += 1
        timer = _Timer(when, self._count, partial(callback, *args), self, context)
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        return timer

    def run_in_executor(
        self,
        executor: object,
        func: Callable[[Unpack[Ts]], T],
        *args: *Ts,
    ) -> asyncio.Future[T]:
        """A thread's work: it ends a little later, whoever waits for it."""
        del executor
        done: asyncio.Future[T] = self.create_future()
        self.call_later(THREAD_S, self._work, done, partial(func, *args))
        return done

    def _work(self, done: asyncio.Future[T], work: Callable[[], T]) -> None:
        try:
            result = work()
        except Exception as error:  # noqa: BLE001  # raised to who waits, as a thread's would be
            if not done.done():
                done.set_exception(error)
        else:
            if not done.done():
                done.set_result(result)

    def timers(self) -> list[asyncio.TimerHandle]:
        """Calls that are still to come."""
        return [timer for timer in self._scheduled if not timer.cancelled()]

    def run_until(self, task: asyncio.Task[None]) -> None:
        """Runs until the task has ended or `stop` is called; what is left then is cancelled."""
        task.add_done_callback(lambda _: self.stop())
        self.run_forever()
        if not task.done():
            task.cancel()
            self.stop()
            self.run_forever()
        if not task.cancelled():
            task.result()

    def end_tasks(self) -> None:
        """Lets nothing of what still runs outlive the loop; a later one would hear of it."""
        while tasks := asyncio.all_tasks(self):
            for task in tasks:
                task.cancel()
            self.call_later(THREAD_S, self.stop)
            self.run_forever()

    def _process_events(self, event_list: list[object]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nothing sleeps that could be woken."""


@contextmanager
def clocks_of(loop: VirtualLoop) -> Iterator[None]:
    """All clocks of the process show the loop's time; the wall clock may jump."""

    def nanoseconds() -> int:
        return round(loop.now * 1e9)

    def wall() -> float:
        return WALL_S + loop.now + loop.wall_offset_s

    shown = {
        "time": wall,
        "time_ns": lambda: round(wall() * 1e9),
        "monotonic": loop.time,
        "monotonic_ns": nanoseconds,
        "perf_counter": loop.time,
        "perf_counter_ns": nanoseconds,
    }
    real = {name: getattr(time, name) for name in shown}
    try:
        for name, clock in shown.items():
            setattr(time, name, clock)
        yield
    finally:
        for name, clock in real.items():
            setattr(time, name, clock)
