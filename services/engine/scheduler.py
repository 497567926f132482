"""Who computes what in the next step: decodes first, then prompts within a token budget."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from services.engine.blocks import BlockPool
from services.engine.sequence import Sequence


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Bounds of one step.

    Args:
        max_batch_size: sequences that run at a time.
        token_budget: tokens computed in one step, as far as decodes leave room.
    """

    max_batch_size: int
    token_budget: int


class SequenceFault(Exception):
    """Scheduling met a bug while it handled one sequence; the others are as they were."""

    def __init__(self, sequence: Sequence) -> None:
        super().__init__(sequence.key)
        self.sequence = sequence


@dataclass(slots=True)
class Work:
    """The next `count` tokens to compute; a token is drawn if these are all the sequence has."""

    sequence: Sequence
    count: int

    @property
    def draws(self) -> bool:
        return self.count == self.sequence.remaining


class Keeper(Protocol):
    """Hears what becomes of blocks, on the step loop's thread, between two steps' computing."""

    def filled(self, sequence: Sequence, indices: range) -> None:
        """These blocks of a sequence were computed, are full and can be found."""

    def placed(self, sequence: Sequence, found: int) -> None:
        """A sequence got its place; its first `found` blocks were there already."""


class Forgetful:
    """A keeper of nothing."""

    def filled(self, sequence: Sequence, indices: range) -> None:
        """It stays in the pool while there is room."""

    def placed(self, sequence: Sequence, found: int) -> None:
        """It is of no interest."""


class Scheduler:
    """Owns the sequences that wait and run, and their blocks.

    Attributes:
        keeper: hears of blocks that are full or were found.
        preemptions: since the start.
        recomputed_tokens: whose blocks were given up, and that nobody had when they were needed.
    """

    def __init__(self, pool: BlockPool, limits: Limits) -> None:
        self.pool = pool
        self.keeper: Keeper = Forgetful()
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.limits = limits
        self.preemptions = 0
        self.recomputed_tokens = 0

    def __iter__(self) -> Iterator[Sequence]:
        yield from self.running
        yield from self.waiting

    @property
    def idle(self) -> bool:
        return not self.running and not self.waiting

    def add(self, sequence: Sequence) -> None:
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Takes a sequence out, wherever it is; its full blocks stay cached."""
        if sequence in self.running:
            self.running.remove(sequence)
        elif sequence in self.waiting:
            self.waiting.remove(sequence)
        self._release(sequence)

    def schedule(self) -> list[Work]:
        """The next step's work. Calling it again without computing gives the same work.

        Raises:
            SequenceFault: remove its sequence, then schedule again.
        """
        works = self._decodes()
        self._admit()
        return works + self._prefills(works)

    def advance(self, work: Work) -> None:
        """Notes that a work's tokens are computed, and makes its full blocks findable."""
        sequence = work.sequence
        sequence.computed += work.count
        full = sequence.computed // self.pool.size
        if full <= sequence.published or not sequence.generation.cache.write:
            return
        addresses = sequence.full_addresses(self.pool.size)
        for index in range(sequence.published, full):
            self.pool.publish(sequence.blocks[index], addresses[index], sequence.tenant)
        self._pin(sequence, range(sequence.published, full))
        self.keeper.filled(sequence, range(sequence.published, full))
        sequence.published = full

    def _decodes(self) -> list[Work]:
        """One token for each sequence that has its prompt behind it, the oldest first."""
        works = []
        index = 0
        while index < len(self.running):
            sequence = self.running[index]
            index += 1
            try:
                if sequence.remaining == 1 and self._grow(sequence):
                    works.append(Work(sequence, 1))
            except Exception as error:
                raise SequenceFault(sequence) from error
        return works

    def _grow(self, sequence: Sequence) -> bool:
        """Makes room for one more token; the youngest sequences give up their blocks for it."""
        if len(sequence.blocks) * self.pool.size >= len(sequence.tokens):
            return True
        while not self.pool.available:
            victim = self.running[-1]
            self._preempt(victim)
            if victim is sequence:
                return False
        sequence.blocks += self.pool.allocate(1)
        return True

    def _preempt(self, sequence: Sequence) -> None:
        self.running.remove(sequence)
        sequence.given_up = sequence.computed
        self._release(sequence)
        sequence.preemptions += 1
        self.preemptions += 1
        self.waiting.appendleft(sequence)

    def _admit(self) -> None:
        while self.waiting and len(self.running) < self.limits.max_batch_size:
            sequence = self.waiting[0]
            try:
                if not self._place(sequence):
                    return
            except Exception as error:
                raise SequenceFault(sequence) from error
            self.running.append(self.waiting.popleft())

    def _place(self, sequence: Sequence) -> bool:
        """Gives a sequence all blocks of its tokens, found or new, if running ones keep room."""
        found = self._cached_prefix(sequence)
        needed = self.pool.blocks_for(len(sequence.tokens)) - len(found)
        self.pool.own(found)
        if self.pool.available - needed < len(self.running):
            self.pool.release(found)
            return False
        sequence.blocks = found + self.pool.allocate(needed)
        sequence.computed = len(found) * self.pool.size
        sequence.published = len(found)
        if sequence.preemptions == 0:
            sequence.note_cached(len(found), self.pool.size)
        else:
            sequence.prompt.find(sequence.computed)
            self.recomputed_tokens += max(0, sequence.given_up - sequence.computed)
        self._pin(sequence, range(len(found)))
        self.keeper.placed(sequence, len(found))
        return True

    def _pin(self, sequence: Sequence, indices: range) -> None:
        """Keeps those of these blocks that are pinned before others, the first one longest."""
        cache = sequence.generation.cache
        pinned = cache.pinned_tokens // self.pool.size if cache.write else 0
        for index in reversed(range(indices.start, min(indices.stop, pinned))):
            self.pool.pin(sequence.blocks[index])

    def _cached_prefix(self, sequence: Sequence) -> list[int]:
        """Known blocks of all tokens but the last, which is computed to draw from."""
        if not sequence.generation.cache.read:
            return []
        return self.pool.match(sequence.usable_addresses(self.pool.size))

    def _prefills(self, decodes: list[Work]) -> list[Work]:
        """Shares the budget: a quarter for the oldest prompt, so that it ends; then short ones."""
        decoding = {work.sequence.key for work in decodes}
        prompts = [sequence for sequence in self.running if sequence.key not in decoding]
        budget = self.limits.token_budget - len(decodes)
        if not prompts or budget <= 0:
            return []
        counts = {prompts[0].key: min(prompts[0].remaining, -(-budget // 4))}
        budget -= counts[prompts[0].key]
        for sequence in sorted(prompts, key=lambda prompt: prompt.remaining):
            taken = counts.get(sequence.key, 0)
            more = min(sequence.remaining - taken, budget)
            counts[sequence.key] = taken + more
            budget -= more
        return [
            Work(sequence, counts[sequence.key]) for sequence in prompts if counts[sequence.key]
        ]

    def _release(self, sequence: Sequence) -> None:
        self.pool.release(sequence.blocks)
        sequence.blocks = []
        sequence.computed = sequence.published = 0
