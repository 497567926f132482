"""Whether a new request finds room, decided before it is read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from services.codec.retry import UNKNOWN_S, spread
from services.shared.errors import Overloaded
from services.shared.stream.load import Load

BUSY = "the server is busy, try again later"


class Pressure:
    """Counts the requests that are answered, and believes what the other side pushed last.

    Args:
        concurrency: requests that are answered at a time.
        load: of the other side; None while it is not known.
        draw: a random number from 0 to 1.
    """

    def __init__(
        self, concurrency: int, load: Callable[[], Load | None], draw: Callable[[], float]
    ) -> None:
        self._concurrency = concurrency
        self._load = load
        self._draw = draw
        self._taken = 0

    def refusal(self) -> Overloaded | None:
        """Why there is no room now, and when it is worth while to come again."""
        load = self._load()
        if self._taken < self._concurrency and (load is None or not load.refusing):
            return None
        wait_s = load.expected_wait_ms / 1000 if load is not None else 0
        return Overloaded(BUSY, retry_after_s=spread(wait_s or UNKNOWN_S, self._draw()))

    @contextmanager
    def place(self) -> Iterator[None]:
        """One of our own places, for as long as the block runs.

        Raises:
            Overloaded: all are taken. Whether the other side has room, it says itself.
        """
        if self._taken >= self._concurrency:
            raise self.refusal() or Overloaded(BUSY)
        self._taken += 1
        try:
            yield
        finally:
            self._taken -= 1
