"""A caller that reads nothing before the end: its events wait in an outbox, merged."""

from __future__ import annotations

from services.shared.stream.events import Accepted, Cancel, Event, Tokens
from services.shared.stream.outbox import Outbox
from services.shared.stream.source import Submission
from tests.simulation.asked import Asked, Submit

STREAM = 0
MOST_WAITING = 3
"""Accepted, all tokens as one, and the end."""


def unread(asked: Asked, submit: Submit) -> Submit:
    """Submits such that `asked` receives nothing before the end, and then all at once."""
    outbox: Outbox[Event] = Outbox()

    def put(event: Event) -> None:
        outbox.put(STREAM, event)
        if not isinstance(event, (Accepted, Tokens)):
            read()

    def read() -> None:
        waiting = outbox.take()[STREAM]
        if len(waiting) > MOST_WAITING:
            raise AssertionError(f"{len(waiting)} events wait for one stream")
        for event in waiting:
            asked.receive(event)

    def submitted(submission: Submission) -> Cancel:
        return submit(Submission(submission.generation, submission.traceparent, put))

    return submitted
