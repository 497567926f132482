"""A token source that plays its oracle's tokens, a step whenever the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

from services.shared.errors import ServiceError
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    Cancel,
    CancelReason,
    Event,
    Finished,
    FinishReason,
    Tokens,
    Usage,
)
from services.shared.stream.generation import Generation
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.source import Submission

SEED = 7
VOCABULARY = 1000


def oracle(prompt_ids: Sequence[int], count: int) -> list[int]:
    """The first tokens after a prompt; each depends on all before it, so none can be lost."""
    ids: list[int] = []
    state = crc32(repr(list(prompt_ids)).encode())
    for _ in range(count):
        ids.append(state % VOCABULARY)
        state = crc32(ids[-1].to_bytes(4), state)
    return ids


@dataclass
class Playing:
    """One generation and what it still has to say."""

    submission: Submission
    ids: list[int]
    position: int
    accepted: bool = False

    @property
    def generation(self) -> Generation:
        return self.submission.generation

    def emit(self, event: Event) -> None:
        self.submission.sink(event)


@dataclass
class ScriptedSource:
    """Generations run until `step` has played their max_tokens (4 when not given)."""

    state: ReplicaState = ReplicaState.READY
    refuse: ServiceError | Exception | None = None
    running: dict[str, Playing] = field(default_factory=dict)
    submitted: list[Submission] = field(default_factory=list)
    cancelled: list[tuple[str, CancelReason]] = field(default_factory=list)
    fetches_blocks: bool = False
    cached_tokens: CachedTokens = CachedTokens()

    def submit(self, submission: Submission) -> Cancel:
        if self.refuse is not None:
            raise self.refuse
        generation = submission.generation
        self.submitted.append(submission)
        count = generation.stopping.max_tokens
        ids = oracle(generation.prompt_ids, 4 if count is None else count)
        name = generation.request_id
        self.running[name] = Playing(submission, ids, len(generation.generated_ids))

        def cancel(reason: CancelReason) -> None:
            if self.running.pop(name, None) is not None:
                self.cancelled.append((name, reason))

        return cancel

    def load(self) -> Load:
        left = sum(len(playing.ids) - playing.position for playing in self.running.values())
        return Load(
            state=self.state,
            running=len(self.running),
            outstanding_tokens=left,
            fetches_blocks=self.fetches_blocks,
        )

    def step(self) -> None:
        """Each generation is accepted, then has one more token, and ends after its last.

        What one tells may cancel it, or another.
        """
        for name, playing in list(self.running.items()):
            if self.running.get(name) is not playing:
                continue
            if not playing.accepted:
                playing.accepted = True
                prompt_tokens = len(playing.generation.prompt_ids)
                playing.emit(
                    Accepted(
                        prompt_tokens=prompt_tokens, cached_tokens=self.cached_tokens, seed=SEED
                    )
                )
            elif playing.position < len(playing.ids):
                token = playing.ids[playing.position]
                playing.emit(Tokens(playing.position, [token]))
                playing.position += 1
            is_over = playing.accepted and playing.position >= len(playing.ids)
            if is_over and self.running.get(name) is playing:
                del self.running[name]
                playing.emit(finished(playing))

    async def play(self) -> None:
        """Steps for ever, as fast as the event loop turns."""
        while True:
            self.step()
            await asyncio.sleep(0.001)


def finished(playing: Playing) -> Finished:
    return Finished(
        reason=FinishReason.MAX_TOKENS,
        usage=Usage(
            prompt_tokens=len(playing.generation.prompt_ids),
            cached_tokens=0,
            completion_tokens=len(playing.ids),
        ),
    )
