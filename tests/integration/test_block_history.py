"""Whatever happens to an engine's blocks and to its messages, its router knows them in the end."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from tokenway.stream.v1 import stream_pb2 as pb

from services.engine.blocks import BlockPool, OutOfBlocks
from services.router.balancing.prefix_index import PrefixIndex
from services.router.chain import Chain, Layout
from services.router.demand import Demand, Lane
from services.router.status import Identity
from services.shared.stream.block_reader import BlockReader
from services.shared.stream.block_wire import blocks_from, blocks_of
from services.shared.stream.waiting_blocks import WaitingBlocks

SIZE = 2
LAYOUT = Layout("v", "l", SIZE)
IDENTITY = Identity(
    model="m", version="v", tokenizer_fingerprint="t", layout_id="l", block_size=SIZE
)
PROMPTS = [
    [first, 0, second, 0, third, 0, 9] for first in (1, 2) for second in (1, 2) for third in (1, 2)
]
NAME = "engine"


class History(RuleBasedStateMachine):
    """Prompts run in a small pool; messages about it arrive, or are lost, when it so happens."""

    def __init__(self) -> None:
        super().__init__()
        self.pool = BlockPool(7, SIZE)
        self.running: list[list[int]] = []
        self.asked = False
        self.fresh = 100
        self.waiting = WaitingBlocks(lambda: None)
        self.index = PrefixIndex()
        self.index.identify(NAME, IDENTITY)
        self.reader = BlockReader(NAME, lambda events: self.index.tell(NAME, events), self.ask)
        self.reader.begin()

    def ask(self) -> None:
        self.asked = True

    @rule(prompt=st.sampled_from(PROMPTS))
    def begin(self, prompt: list[int]) -> None:
        addresses = list(Chain(LAYOUT, b"", prompt))
        found = self.pool.match(addresses)
        self.pool.own(found)
        try:
            blocks = found + self.pool.allocate(len(addresses) - len(found))
        except OutOfBlocks:
            self.pool.release(found)
            return
        for block, address in zip(blocks, addresses, strict=True):
            self.pool.publish(block, address)
        self.running.append(blocks)

    @rule(pick=st.integers(0, 9))
    def end(self, pick: int) -> None:
        if self.running:
            self.pool.release(self.running.pop(pick % len(self.running)))

    @rule()
    def flush(self) -> None:
        self.pool.flush()

    @rule()
    def step(self) -> None:
        """A step's changes go to the session."""
        changes = self.pool.take_changes()
        if changes is not None:
            self.waiting.changed(changes)

    @rule(lost=st.booleans())
    def send(self, lost: bool) -> None:
        """The session answers what it was asked, and sends what waits."""
        if self.asked and self.waiting.ask():
            self.asked = False
            self.step()
            self.waiting.found(self.pool.watch())
        events = self.waiting.take()
        if events is not None and not lost:
            message = blocks_of(events).SerializeToString()
            self.reader.receive(blocks_from(pb.BlockEvents.FromString(message)))

    @rule()
    def reconnect(self) -> None:
        """A new session on both sides."""
        self.waiting = WaitingBlocks(lambda: None)
        self.index.forget(NAME)
        self.index.identify(NAME, IDENTITY)
        self.reader.begin()

    @precondition(lambda self: self.pool.available)
    @rule()
    def settle(self) -> None:
        """No message is lost any more, and there is one, of something new: now both must agree."""
        blocks = self.pool.allocate(1)
        self.fresh += 1
        self.pool.publish(blocks[0], next(iter(Chain(LAYOUT, b"", [self.fresh, 0]))))
        self.pool.release(blocks)
        self.step()
        self.send(lost=False)
        while self.asked or self.waiting:
            self.send(lost=False)
        self.agree()

    def agree(self) -> None:
        assert self.index._holders[NAME].addresses == set(self.pool._block_at)
        assert self.index.known_blocks(NAME) == len(self.pool._block_at)
        for prompt in PROMPTS:
            demand = Demand(model="m", token_ids=prompt, output_tokens=1, lane=Lane.SHORT)
            found = len(self.pool.match(Chain(LAYOUT, b"", prompt))) * SIZE
            assert self.index.cached_tokens(demand).get(NAME, 0) == found

    @invariant()
    def the_index_is_of_one_piece(self) -> None:
        holders = [*self.index._holders.values(), *self.index._gone]
        assert set(self.index._masks) == {one for each in holders for one in each.addresses}
        for address, mask in self.index._masks.items():
            assert mask == sum(each.mask for each in holders if address in each.addresses)


TestHistory = History.TestCase
TestHistory.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
