"""However slowly block events are read, and whatever is lost: both sides agree in the end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.shared.stream import waiting_blocks
from services.shared.stream.block_changes import BlockChanges
from services.shared.stream.block_reader import BlockReader
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.waiting_blocks import WaitingBlocks

A, B, C = b"a", b"b", b"c"


def changes(*, stored: tuple[bytes, ...] = (), dropped: tuple[bytes, ...] = ()) -> BlockChanges:
    made = BlockChanges(stored)
    for address in dropped:
        made.drop(address)
    return made


def test_nothing_is_told_before_something_waits_and_the_reader_is_woken_once() -> None:
    wakes: list[None] = []
    waiting = WaitingBlocks(lambda: wakes.append(None))
    assert waiting.take() is None
    waiting.found([])
    waiting.changed(changes(stored=(A,)))
    assert waiting.take() == BlockEvents(sequence=1, snapshot=True, stored=[A], dropped=[])
    assert waiting.take() is None
    assert len(wakes) == 1
    waiting.changed(changes(stored=(B,)))
    waiting.changed(changes(stored=(C,), dropped=(A,)))
    assert waiting.take() == BlockEvents(sequence=2, stored=[B, C], dropped=[A])
    assert len(wakes) == 2


def test_changes_that_undo_each_other_are_not_told() -> None:
    waiting = WaitingBlocks(lambda: None)
    waiting.found([A])
    waiting.take()
    waiting.changed(changes(stored=(B,), dropped=(A,)))
    waiting.changed(changes(stored=(A,), dropped=(B,)))
    assert waiting.take() is None


def test_a_snapshot_that_waits_takes_in_what_comes_and_replaces_what_waited() -> None:
    waiting = WaitingBlocks(lambda: None)
    waiting.changed(changes(stored=(C,)))
    waiting.found([A, B])
    waiting.changed(changes(stored=(C,), dropped=(A,)))
    assert waiting.take() == BlockEvents(sequence=1, snapshot=True, stored=[B, C], dropped=[])


def test_much_goes_in_pieces_what_was_dropped_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_blocks, "MAX_ADDRESSES", 2)
    waiting = WaitingBlocks(lambda: None)
    waiting.found([A, B, C])
    assert waiting.take() == BlockEvents(sequence=1, snapshot=True, stored=[A, B], dropped=[])
    waiting.changed(changes(dropped=(A,)))
    assert waiting.take() == BlockEvents(sequence=2, stored=[C], dropped=[A])
    assert waiting.take() is None


def test_who_asks_again_before_the_answer_is_answered_once() -> None:
    waiting = WaitingBlocks(lambda: None)
    assert waiting.ask()
    assert not waiting.ask()
    waiting.found([])
    assert not waiting.ask()
    waiting.take()
    assert waiting.ask()


class Follower:
    """A client's side: what it knows by the events that its reader passes on."""

    def __init__(self) -> None:
        self.asks = 0
        self.known: set[bytes] = set()
        self.reader = BlockReader("replica", self.follow, self._ask)
        self.reader.begin()

    def follow(self, events: BlockEvents) -> None:
        assert not set(events.stored) & set(events.dropped)
        if events.snapshot:
            self.known = set()
        self.known = self.known - set(events.dropped) | set(events.stored)

    def _ask(self) -> None:
        self.asks += 1


def events(sequence: int, *stored: bytes, snapshot: bool = False) -> BlockEvents:
    return BlockEvents(sequence=sequence, snapshot=snapshot, stored=stored)


def test_events_before_the_snapshot_are_of_no_meaning() -> None:
    follower = Follower()
    follower.reader.receive(events(1, A))
    follower.reader.receive(events(2, B, snapshot=True))
    assert follower.known == {B}
    assert follower.asks == 1


def test_a_snapshot_that_is_missing_is_asked_for_again() -> None:
    follower = Follower()
    follower.reader.receive(events(2, A))
    assert follower.asks == 2
    follower.reader.receive(events(3, B, snapshot=True))
    assert follower.known == {B}


def test_a_gap_is_logged_and_all_is_asked_for(caplog: pytest.LogCaptureFixture) -> None:
    follower = Follower()
    follower.reader.receive(events(1, A, snapshot=True))
    follower.reader.receive(events(3, C))
    follower.reader.receive(events(4, C))
    assert follower.known == {A}
    assert caplog.messages == ["replica sent block events 3 instead of 2; asked for all of them"]
    assert follower.asks == 2
    follower.reader.receive(events(5, B, snapshot=True))
    follower.reader.receive(events(6, C))
    assert follower.known == {B, C}
    assert follower.asks == 2


def test_a_message_that_comes_twice_is_a_gap() -> None:
    follower = Follower()
    follower.reader.receive(events(1, A, snapshot=True))
    follower.reader.receive(events(2, B))
    follower.reader.receive(events(2, B))
    assert follower.asks == 2


def test_a_new_session_counts_from_1_and_begins_with_a_snapshot() -> None:
    follower = Follower()
    follower.reader.receive(events(1, A, snapshot=True))
    follower.reader.begin()
    follower.reader.receive(events(1, B))
    follower.reader.receive(events(2, C, snapshot=True))
    assert follower.known == {C}
    assert follower.asks == 2


STEPS = st.one_of(
    st.tuples(st.just("toggle"), st.sets(st.sampled_from([b"%d" % n for n in range(8)]))),
    st.tuples(st.sampled_from(["send", "lose"]), st.none()),
)


@given(st.lists(STEPS, max_size=40), st.integers(1, 4))
def test_any_history_with_any_losses_leads_to_what_can_be_found(
    steps: list[tuple[str, set[bytes] | None]], piece: int
) -> None:
    findable: set[bytes] = set()
    waiting, follower = WaitingBlocks(lambda: None), Follower()
    answered = 0

    def send(*, lost: bool = False) -> None:
        nonlocal answered
        if answered < follower.asks and waiting.ask():
            answered = follower.asks
            waiting.found(sorted(findable))
        sent = waiting.take()
        if sent is not None and not lost:
            follower.reader.receive(sent)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waiting_blocks, "MAX_ADDRESSES", piece)
        for step, toggled in steps:
            if toggled is not None:
                made = BlockChanges(sorted(toggled - findable))
                for address in sorted(toggled & findable):
                    made.drop(address)
                findable ^= toggled
                waiting.changed(made)
            else:
                send(lost=step == "lose")
        waiting.changed(changes(stored=(b"last",)))
        findable.add(b"last")
        while waiting or answered < follower.asks:
            send()
    assert follower.known == findable
