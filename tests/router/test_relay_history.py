"""Whatever happens in whatever order: no token is lost or repeated, and nothing is left over."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from services.shared.errors import Code
from services.shared.stream.events import Cancel, CancelReason, Failed, Finished
from tests.recorder import Recorder, submission
from tests.router.world import WAIT_S, World
from tests.scripted_source import oracle

LOST = Failed(code=Code.UNAVAILABLE, message="the session ended", retryable=True)
NAMES = ("a", "b", "c")


class History(RuleBasedStateMachine):
    """Three replicas, and callers that come, go and run out of time."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(*NAMES)
        self.recorders: list[Recorder] = []
        self.cancels: list[Cancel] = []
        self.gone: set[int] = set()

    @rule(timeout_ms=st.none() | st.integers(1000, 9000))
    def submit(self, timeout_ms: int | None) -> None:
        number = len(self.recorders)
        self.recorders.append(Recorder())
        options = {"max_tokens": number % 4, "timeout_ms": timeout_ms}
        new = submission(f"x{number}", self.recorders[-1], **options)
        self.cancels.append(self.world.relay.submit(new))

    @rule()
    def step(self) -> None:
        for source in self.world.sources.values():
            source.step()

    @rule(name=st.sampled_from(NAMES))
    def lose(self, name: str) -> None:
        running = self.world.sources[name].running
        for request in list(running):
            running.pop(request).emit(LOST)

    @precondition(lambda self: self.cancels)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        number = data.draw(st.integers(0, len(self.cancels) - 1))
        self.gone.add(number)
        self.cancels[number](CancelReason.CLIENT_GONE)

    @rule(name=st.sampled_from(NAMES))
    def report(self, name: str) -> None:
        self.world.report(name)

    @rule(seconds=st.integers(1, 5))
    def pass_time(self, seconds: int) -> None:
        self.world.clock.pass_time(seconds)
        for name in NAMES:
            self.world.report(name)

    @invariant()
    def each_stream_is_a_beginning_of_the_truth(self) -> None:
        for recorder in self.recorders:
            assert recorder.accepted() <= 1
            assert recorder.ids == oracle((1, 2, 3), len(recorder.ids))
            ends = [event for event in recorder.events if isinstance(event, Finished | Failed)]
            assert ends in ([], recorder.events[-1:])

    def teardown(self) -> None:
        for _ in range(9):
            self.step()
        self.world.clock.pass_time(WAIT_S)
        for _ in range(9):
            self.step()
        assert set(self.world.outstanding().values()) == {0}
        assert len(self.world.outcomes) == len(self.recorders)
        assert all(alarm.cancelled for alarm in self.world.clock.alarms)
        for number, recorder in enumerate(self.recorders):
            assert isinstance(recorder.last, Finished | Failed) or number in self.gone
            if isinstance(recorder.last, Finished):
                assert len(recorder.ids) == number % 4


TestHistory = History.TestCase
