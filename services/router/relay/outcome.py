"""How a generation ended at the router, and who is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from services.shared.stream.generation import Generation


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The figures of one generation.

    Args:
        end: the finish reason, or `cancelled: ` or `failed: ` with why.
        error: the text of a failure.
        replica: the last that had it, where one had.
        routed: why that one.
        attempts: replicas that it was sent to.
        setback: the text of the last failure of a replica; None where none failed it.
        output_ids: what went through.
    """

    end: str
    error: str | None = None
    replica: str = ""
    routed: str = ""
    attempts: int
    setback: str | None = None
    output_ids: Sequence[int]


@dataclass(frozen=True, kw_only=True, slots=True)
class Destination:
    """The replica that a generation is sent to, and why; to a prefill its prompt alone."""

    replica: str
    routed: str
    is_prefill: bool = False


class Attempt(Protocol):
    """The record of a generation's way to one replica."""

    @property
    def traceparent(self) -> str:
        """For that replica."""

    def close(self, end: str) -> None:
        """It is there no longer. Args: end: as in Outcome."""


class Entry(Protocol):
    """The record of one generation."""

    def wait(self) -> None:
        """It waits for a place, until it is sent or ends; again, while it does, is nothing new."""

    def attempt(self, to: Destination) -> Attempt:
        """It is sent."""

    def close(self, outcome: Outcome) -> None: ...


class Journal(Protocol):
    """Keeps a record of each generation."""

    def open(self, generation: Generation, traceparent: str) -> Entry: ...
