"""Whatever happens in whatever order: no token is lost or repeated, and nothing is left over."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from services.router.demand import Lane
from services.router.fleet.room import RoomRules
from services.router.relay.retry_budget import RetryRules
from services.shared.errors import Overloaded, ServiceError, Unavailable
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    Cancel,
    CancelReason,
    Failed,
    Finished,
    Tokens,
)
from tests.recorder import Recorder, submission
from tests.router.world import LOST, WAIT_S, World
from tests.scripted_source import oracle

NAMES = ("a", "b", "c")
LIES = (
    Accepted(prompt_tokens=3, cached_tokens=CachedTokens(), seed=99),
    Tokens(0, [999]),
    LOST,
)
A_NAME = st.sampled_from(NAMES)


class History(RuleBasedStateMachine):
    """Three replicas with few places, and callers that come, go and run out of time."""

    def __init__(self) -> None:
        super().__init__()
        room = RoomRules(slots=2, window=dict.fromkeys(Lane, 6))
        retries = RetryRules(share=0.5, burst=3)
        self.world = World(*NAMES, room=room, max_waiting=4, retries=retries)
        self.recorders: list[Recorder] = []
        self.cancels: list[Cancel] = []
        self.gone: set[int] = set()

    @rule(timeout_ms=st.none() | st.integers(1000, 9000))
    def submit(self, timeout_ms: int | None) -> None:
        number, recorder = len(self.recorders), Recorder()
        options = {"max_tokens": number % 4, "timeout_ms": timeout_ms}
        try:
            cancel = self.world.relay.submit(submission(f"x{number}", recorder, **options))
        except (Unavailable, Overloaded):
            assert recorder.events == []
            cancel = _nothing
            self.gone.add(number)
        self.recorders.append(recorder)
        self.cancels.append(cancel)

    @rule(name=A_NAME)
    def step(self, name: str) -> None:
        self.world.sources[name].step()

    @rule(name=A_NAME)
    def lose_all(self, name: str) -> None:
        for request in list(self.world.sources[name].running):
            self.world.lose(name, request)

    @rule(name=A_NAME)
    def die_or_come_again(self, name: str) -> None:
        if self.world.fleet[name].load is None:
            self.world.come_again(name)
        else:
            self.world.die(name)

    @rule(name=A_NAME, undo=st.booleans())
    def drain(self, name: str, undo: bool) -> None:
        self.world.fleet.drain(name, undo=undo)

    @rule(name=A_NAME)
    def evacuate(self, name: str) -> None:
        self.world.relay.evacuate(name)

    @rule(name=A_NAME, error=st.sampled_from([None, Unavailable("down"), Overloaded("full")]))
    def refuse(self, name: str, error: ServiceError | None) -> None:
        self.world.sources[name].refuse = error

    @rule(name=A_NAME, lie=st.sampled_from(LIES))
    def speak_late(self, name: str, lie: Accepted | Tokens | Failed) -> None:
        """The replica goes on with what it does not have any more."""
        source = self.world.sources[name]
        running = [playing.submission for playing in source.running.values()]
        for late in source.submitted:
            if not any(late is one for one in running):
                late.sink(lie)

    @precondition(lambda self: self.cancels)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.cancels) - 1))
        self.gone.add(number)
        self.cancels[number](CancelReason.CLIENT_GONE)

    @rule(seconds=st.sampled_from([0, 0.25, 1, 5]))
    def pass_time(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @invariant()
    def each_stream_is_a_beginning_of_the_truth(self) -> None:
        for recorder in self.recorders:
            assert recorder.accepted() <= 1
            assert recorder.ids == oracle((1, 2, 3), len(recorder.ids))
            ends = [event for event in recorder.events if isinstance(event, Finished | Failed)]
            assert ends in ([], recorder.events[-1:])

    @invariant()
    def each_generation_is_at_one_replica_at_most_and_is_counted_there(self) -> None:
        running = [name for source in self.world.sources.values() for name in source.running]
        assert len(running) == len(set(running))
        for name, source in self.world.sources.items():
            assert self.world.fleet[name].running >= len(source.running)
        assert 0 <= self.world.budget.left <= 3

    def teardown(self) -> None:
        for name, source in self.world.sources.items():
            source.refuse = None
            self.world.fleet.drain(name, undo=True)
            if self.world.fleet[name].load is None:
                self.world.come_again(name)
        for _ in range(int(WAIT_S) + 1):
            self.world.pass_time(1)
            self.world.play()
        for replica in self.world.fleet:
            left = (replica.running, replica.outstanding_tokens, replica.pending_tokens)
            assert left == (0, 0, 0)
        assert self.world.admission.waiting == 0
        assert len(self.world.outcomes) == len(self.recorders)
        assert not self.world.clock.alarms
        for number, recorder in enumerate(self.recorders):
            assert isinstance(recorder.last, Finished | Failed) or number in self.gone
            if isinstance(recorder.last, Finished):
                assert len(recorder.ids) == number % 4
                assert recorder.last.usage.completion_tokens == number % 4
            if isinstance(recorder.last, Failed):
                assert recorder.last.message


def _nothing(_: CancelReason) -> None:
    """Cancels what was never taken."""


TestHistory = History.TestCase
