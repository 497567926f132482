"""The interface of content filters, which operators may bring their own of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

GROUP = "tokenway.content_filters"
"""Entry points of filters: each is a `Load`."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What one message of a prompt says: texts that follow one another.

    Args:
        place: the field that the caller wrote it in, for example `messages[2]`.
        texts: in their order.
    """

    place: str
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refused:
    """A prompt is not answered.

    Args:
        at: which of its passages is the reason, counted from 0.
        rule: names the reason in logs; callers are not told.
    """

    at: int
    rule: str


@dataclass(frozen=True, slots=True)
class Cleared:
    """So many characters of a text, from its beginning, may be shown whatever follows them."""

    upto: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """So many characters of a text may be shown, and nothing after them; `rule` tells why."""

    upto: int
    rule: str


Ruling = Cleared | Blocked


class OutputMatcher(Protocol):
    """Looks at one text while it is written.

    What it rules must not depend on how the text is cut into pieces. Characters are counted from
    the beginning of the text; what was cleared stays cleared. It runs on the event loop with a
    token or a few at a time, and must be quick.
    """

    def push(self, text: str) -> Ruling:
        """Takes the next piece; not called again once the text was blocked."""

    def pause(self) -> Ruling:
        """The text ends here, or something else stands between it and what follows.

        All of it is cleared that is not blocked; a match that is completed later still blocks.
        """


class ContentFilter(Protocol):
    """Decides what is asked and answered. Its methods are called in several threads."""

    def check_prompt(self, passages: Sequence[Passage]) -> Refused | None:
        """Whether the prompt must not be answered; called in a worker thread."""

    def output_matcher(self) -> OutputMatcher:
        """Looks at one text of an answer: what is shown, thought, or the arguments of one call."""


Load = Callable[[Path | None], ContentFilter]
"""Makes a filter of what the file says; called again when it has changed. Raises what is wrong."""
