"""Kills the engine that answers a client, in the middle of the answer."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import grpc

from tests.integration.stack import Service, Stack

POLL_S = 0.02
TOKENS = 20
"""So many have come when the engine is killed."""


class Killing:
    """Watches the engines of a stack until one has answered enough of the longest prompt.

    Attributes:
        killed: whether it was.
    """

    def __init__(self, stack: Stack) -> None:
        self.killed = False
        self._stack = stack
        self._before = [len(_prompts(engine)) for engine in stack.engines]
        self._over = threading.Event()

    def run(self) -> None:
        """For a thread."""
        seen: dict[int, int] = {}
        while not self._over.is_set():
            for at, engine in enumerate(self._stack.engines):
                left = _left(engine)
                seen[at] = max(seen.get(at, 0), left) if left else 0
                if left and left <= seen[at] - TOKENS and engine is self._busiest():
                    engine.process.kill()
                    self.killed = True
                    return
            time.sleep(POLL_S)

    def stop(self) -> None:
        self._over.set()

    def _busiest(self) -> Service:
        """The engine that was sent the longest prompt: an agent asks small things beside it."""
        pairs = zip(self._stack.engines, self._before, strict=True)
        longest = [max(_prompts(engine)[before:], default=0) for engine, before in pairs]
        return self._stack.engines[longest.index(max(longest))]


@contextmanager
def killing(stack: Stack) -> Iterator[Killing]:
    """Watches inside the block."""
    killer = Killing(stack)
    thread = threading.Thread(target=killer.run)
    thread.start()
    try:
        yield killer
    finally:
        killer.stop()
        thread.join()


def _left(engine: Service) -> int:
    """Tokens that an engine has still to draw; 0 while it computes prompts or does nothing."""
    try:
        load = engine.describe().load
    except grpc.RpcError:
        return 0
    return 0 if load.pending_prompt_tokens else load.outstanding_tokens


def _prompts(engine: Service) -> list[int]:
    """Lengths of all prompts that an engine was sent."""
    return [line["prompt_tokens"] for line in engine.lines(message="prompt received")]
