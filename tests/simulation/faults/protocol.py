"""Replicas that break the protocol of a session."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from services.shared.errors import Code
from services.shared.stream.events import (
    Accepted,
    CachedTokens,
    Event,
    Failed,
    Finished,
    FinishReason,
    Tokens,
    Usage,
)
from services.shared.stream.source import Submission
from tests.simulation.faults.fault import Fault
from tests.simulation.network import Frame
from tests.simulation.session import Session, Tampered

UNKNOWN_STREAM = 10**9


class _Tampering(Fault):
    """Changes the next frame that has something to change; the culprit must be named for it."""

    def strike(self) -> bool:
        session = self.busy_session() or self.session()
        if session is None:
            return False
        session.tamper = self.tamper
        return session.is_up

    def tamper(self, frame: Frame) -> Tampered | None:
        for index, (stream_id, event) in enumerate(frame.events):
            if isinstance(event, Tokens):
                wrong = [(stream_id, bad) for bad in self.spoil(event)]
                events = [*frame.events[:index], *wrong, *frame.events[index + 1 :]]
                return Tampered(replace(frame, events=events), stream_id)
        return None

    def spoil(self, event: Tokens) -> list[Event]:
        raise NotImplementedError


class Skip(_Tampering):
    """A position is left out."""

    def spoil(self, event: Tokens) -> list[Event]:
        if len(event.ids) > 1:
            return [Tokens(event.first_position + 1, event.ids[1:])]
        return [Tokens(event.first_position + 1, event.ids)]


class Repeat(_Tampering):
    """A position is sent twice."""

    def spoil(self, event: Tokens) -> list[Event]:
        return [event, event]


class EndTooSoon(_Tampering):
    """An end comes before the last token."""

    def spoil(self, event: Tokens) -> list[Event]:
        usage = Usage(prompt_tokens=1, cached_tokens=0, completion_tokens=event.first_position + 7)
        return [Finished(reason=FinishReason.MAX_TOKENS, usage=usage)]


class AcceptTwice(_Tampering):
    """What runs is accepted again."""

    def spoil(self, event: Tokens) -> list[Event]:
        again = Accepted(prompt_tokens=1, cached_tokens=CachedTokens(), seed=0)
        return [event, again]


class UnknownStream(Fault):
    """Events of a stream that the replica was never sent."""

    def strike(self) -> bool:
        session = self.session()
        if session is None or not session.is_up:
            return False
        session.inject(Frame([(UNKNOWN_STREAM, Tokens(0, [1]))]))
        return True


class _Late(Fault):
    """Events reach the sink of a generation that the replica has no more, and another one has."""

    how = ""

    def take_away(self, session: Session) -> None:
        """Has the replica lose what it has."""
        raise NotImplementedError

    def strike(self) -> bool:
        session = self.busy_session()
        if session is None:
            return False
        session.past.clear()
        self.take_away(session)
        for _ in range(3):
            self.later(0.4, partial(self._come, session))
        return True

    def _come(self, session: Session) -> None:
        for past in list(session.past):
            if past.how == self.how:
                self.world.judge.saw(f"late events of what was {self.how}")
                self._send(past.submission)

    def _send(self, submission: Submission) -> None:
        given = len(submission.generation.generated_ids)
        usage = Usage(prompt_tokens=1, cached_tokens=0, completion_tokens=given)
        for event in (
            Accepted(prompt_tokens=1, cached_tokens=CachedTokens(), seed=0),
            Tokens(given, [1, 2, 3]),
            Failed(code=Code.UNAVAILABLE, message="late", retryable=self.random.random() < 0.5),
            Finished(reason=FinishReason.MAX_TOKENS, usage=usage),
        ):
            if self.random.random() < 0.5:
                submission.sink(event)


class LateFrames(_Late):
    """They come by a session that has ended."""

    how = "lost"

    def take_away(self, session: Session) -> None:
        if session.connection is not None:
            session.connection.cut()


class AfterCancel(_Late):
    """They answer what was cancelled."""

    how = "cancelled"

    def take_away(self, session: Session) -> None:
        for front in self.world.machines.fronts:
            life = front.life
            if life is not None and life.sessions.get(session.name) is session:
                life.router.drain_replica(session.name, undo=False)
                self.later(1.0, partial(life.allow, session.name))
