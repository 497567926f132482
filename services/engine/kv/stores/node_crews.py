"""Threads that ask several nodes at once."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from typing import TypeVar

from services.engine.kv.store import Store, StoreFailed, StoreTimeout

T = TypeVar("T")


class NodeCrews:
    """A few threads for each node, so that one that hangs keeps nobody else's.

    Args:
        nodes: in the order of the settings.
        threads: for each.
        timeout_s: that an operation on a node takes at most.
    """

    def __init__(self, nodes: Sequence[Store], threads: int, timeout_s: float) -> None:
        self.nodes = tuple(nodes)
        self._timeout_s = timeout_s
        self._crews = [
            ThreadPoolExecutor(threads, thread_name_prefix=f"cache node {index}")
            for index in range(len(nodes))
        ]

    def start(self, index: int, act: Callable[[int, Store], T]) -> Future[T]:
        """Raises StoreFailed after `close`."""
        try:
            return self._crews[index].submit(act, index, self.nodes[index])
        except RuntimeError:
            raise StoreFailed("the store is closed") from None

    def ask_all(self, act: Callable[[int, Store], T]) -> Generator[tuple[int, T | StoreFailed]]:
        """What `act` gives for each node, the fastest first; nodes that take too long fail.

        Closing it leaves out those that have not begun.
        """
        asked: dict[Future[T], int] = {
            self.start(index, act): index for index in range(len(self.nodes))
        }
        try:
            for done in as_completed(asked, self._timeout_s):
                index = asked.pop(done)
                outcome: T | StoreFailed
                try:
                    outcome = done.result()
                except StoreFailed as failure:
                    outcome = failure
                yield index, outcome
        except TimeoutError:
            for index in asked.values():
                yield index, StoreTimeout(f"node {index} does not answer in {self._timeout_s} s")
        finally:
            for left in asked:
                left.cancel()

    def close(self) -> None:
        for crew in self._crews:
            crew.shutdown(wait=False, cancel_futures=True)
        for node in self.nodes:
            node.close()
