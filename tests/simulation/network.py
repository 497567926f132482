"""The network between a router and one replica: ordered, slow at times, silent or cut."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar

from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import CancelReason, Event, Refused
from services.shared.stream.load import Load
from services.shared.stream.source import Submission
from tests.simulation.virtual_time import VirtualLoop

Item = TypeVar("Item")

KEEPALIVE_S = 30.0
"""A connection whose peer is silent for so long is given up."""


@dataclass(frozen=True, slots=True)
class Submit:
    stream_id: int
    submission: Submission


@dataclass(frozen=True, slots=True)
class Cancel:
    stream_id: int
    reason: CancelReason


@dataclass(frozen=True, slots=True)
class WatchBlocks:
    """Asks for all blocks, and their changes from then on."""


Command = Submit | Cancel | WatchBlocks


@dataclass(slots=True)
class Frame:
    """What a replica sends at a time."""

    events: list[tuple[int, Event | Refused]]
    load: Load | None = None
    blocks: BlockEvents | None = None


class Wire(Generic[Item]):
    """One direction of a connection. What is sent arrives in order, while the wire is not closed.

    Args:
        delay_s: how long something is under way, drawn anew for each.
    """

    def __init__(
        self, loop: VirtualLoop, delay_s: Callable[[], float], receive: Callable[[Item], None]
    ) -> None:
        self._loop = loop
        self._delay_s = delay_s
        self._receive = receive
        self._under_way: deque[tuple[float, Item]] = deque()
        self._timer_runs = False
        self.silent = False
        self.closed = False

    def send(self, item: Item) -> None:
        if not self.closed:
            self._under_way.append((self._loop.time() + self._delay_s(), item))
            self._expect()

    def speak(self) -> None:
        """Ends a silence: what was held back arrives at once."""
        self.silent = False
        self._expect()

    def close(self) -> None:
        """What is under way never arrives."""
        self.closed = True
        self._under_way.clear()

    def _expect(self) -> None:
        if self._under_way and not self._timer_runs:
            self._timer_runs = True
            self._loop.call_at(max(self._under_way[0][0], self._loop.time()), self._arrive)

    def _arrive(self) -> None:
        self._timer_runs = False
        now = self._loop.time()
        while self._under_way and self._under_way[0][0] <= now and not self.silent:
            self._receive(self._under_way.popleft()[1])
        if not self.silent:
            self._expect()


class Connection:
    """Two wires and their common end, of which each side hears in its own time.

    Args:
        at_router: called with each frame.
        at_replica: called with each command.
        router_down: called once when the router learns of the end.
        replica_down: called once when the replica does.
    """

    def __init__(
        self,
        line: Line,
        at_router: Callable[[Frame], None],
        at_replica: Callable[[Command], None],
        router_down: Callable[[], None],
        replica_down: Callable[[], None],
    ) -> None:
        self._line = line
        self._ends = (router_down, replica_down)
        self.frames: Wire[Frame] = Wire(line.loop, line.frame_delay_s, at_router)
        self.commands: Wire[Command] = Wire(line.loop, line.command_delay_s, at_replica)
        self.is_up = True

    def cut(self) -> None:
        """Breaks it off; both sides hear of it within the network's delay."""
        if not self.is_up:
            return
        self.is_up = False
        self.frames.close()
        self.commands.close()
        for end in self._ends:
            self._line.loop.call_later(self._line.draw_delay_s(), end)

    def fall_silent(self, *, frames: bool, commands: bool) -> None:
        """Nothing arrives in these directions; keepalive ends it if that lasts."""
        self.frames.silent = frames
        self.commands.silent = commands
        self._line.loop.call_later(KEEPALIVE_S, self._give_up)

    def speak(self) -> None:
        if self.is_up:
            self.frames.speak()
            self.commands.speak()

    def _give_up(self) -> None:
        if self.frames.silent or self.commands.silent:
            self.cut()


class Line:
    """The way to one replica, over all its connections.

    Attributes:
        extra_s: added to each frame's time under way.
        is_open: whether connections can be made.
    """

    def __init__(self, loop: VirtualLoop, random: Random, delay_s: float) -> None:
        self.loop = loop
        self.extra_s = 0.0
        self.is_open = True
        self._random = random
        self._delay_s = delay_s

    def draw_delay_s(self) -> float:
        return self._delay_s * (0.5 + self._random.random())

    def command_delay_s(self) -> float:
        return self.draw_delay_s()

    def frame_delay_s(self) -> float:
        return self.draw_delay_s() + self.extra_s
