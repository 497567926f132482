"""What waits to be told to the store."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from services.shared.access.shared_quotas.answer import Answer, Question


class StoreAway(Exception):
    """The store does not answer. `is_known`: it may have heard the question all the same."""

    def __init__(self, *, is_known: bool) -> None:
        super().__init__("the store does not answer")
        self.is_known = is_known


class Errand(Protocol):
    """A question on its way.

    Attributes:
        is_kept: it is asked again when the store did not answer.
    """

    @property
    def question(self) -> Question: ...
    @property
    def is_kept(self) -> bool: ...
    @property
    def is_over(self) -> bool:
        """Nobody waits for it any more."""
        ...

    def sent(self) -> None: ...
    def heard(self, answer: Answer) -> None: ...
    def lost(self) -> None: ...


@dataclass(slots=True)
class Asked:
    """Somebody waits for the answer."""

    question: Question
    answer: asyncio.Future[Answer]
    is_sent: bool = False
    is_kept: bool = False

    @property
    def is_over(self) -> bool:
        return self.answer.done()

    def sent(self) -> None:
        self.is_sent = True

    def heard(self, answer: Answer) -> None:
        if not self.answer.done():
            self.answer.set_result(answer)

    def lost(self) -> None:
        if not self.answer.done():
            self.answer.set_exception(StoreAway(is_known=self.is_sent))


@dataclass(slots=True)
class Told:
    """Nobody waits; `hear` is given the answer. Kept, it is told until the store has heard it."""

    question: Question
    hear: Callable[[Answer], None]
    is_kept: bool
    is_over: bool = False

    def sent(self) -> None:
        pass

    def heard(self, answer: Answer) -> None:
        self.hear(answer)

    def lost(self) -> None:
        pass
