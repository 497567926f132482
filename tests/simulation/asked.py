"""One generation as its caller sees it, held against the oracle with every event."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from services.shared.errors import Code, ServiceError
from services.shared.stream import events
from services.shared.stream.events import Accepted, CancelReason, Event, Failed, Finished, Tokens
from services.shared.stream.generation import Generation
from services.shared.stream.source import Submission
from tests.simulation.judge import Judge
from tests.simulation.oracles import Oracles
from tests.simulation.refusals import refusals_of

LATE_S = 0.002
"""A deadline is told in whole milliseconds."""

Submit = Callable[[Submission], events.Cancel]


@dataclass(frozen=True, kw_only=True, slots=True)
class Rules:
    """What may become of generations in this world.

    Args:
        versions: of the model, whose outputs differ.
        failures: codes of failures that may occur.
    """

    context_length: int
    versions: Sequence[str]
    failures: frozenset[Code]


class Asked:
    """A generation from the request to its end.

    Args:
        wrong: the code with which a request that is wrong must fail; None for a right one.

    Attributes:
        received: outputs in order, those that were given with the request first.
        failed: how it failed.
        is_over: it finished, failed or was cancelled.
    """

    def __init__(
        self,
        generation: Generation,
        judge: Judge,
        time: Callable[[], float],
        rules: Rules,
        wrong: Code | None = None,
    ) -> None:
        self.generation = generation
        self._judge = judge
        self._time = time
        self._rules = rules
        self._wrong = wrong
        self.asked_at = self.ended_at = time()
        self._cancel: events.Cancel | None = None
        self.received = list(generation.generated_ids)
        self.accepted: Accepted | None = None
        self._oracle: Oracles | None = None
        self.failed: Failed | None = None
        self.is_over = False
        self.end = ""
        self.on_end: Callable[[], None] = lambda: None

    @property
    def _name(self) -> str:
        return self.generation.request_id

    def submit(self, submit: Submit) -> None:
        """Asks; what is refused at once has failed."""
        quality = self.generation.quality_of_service
        self._note("asked", tenant=quality.tenant, prompt=len(self.generation.prompt_ids))
        try:
            self._cancel = submit(Submission(self.generation, "", self.receive))
        except ServiceError as error:
            self._fail(Failed.of(error))

    def leave(self) -> None:
        """The caller wants no more."""
        if not self.is_over and self._cancel is not None:
            self._over("cancelled")
            self._cancel(CancelReason.CLIENT_GONE)

    def receive(self, event: Event) -> None:
        if self.is_over:
            self._broken("nothing after the end", f"{event} after {self.end}")
            return
        match event:
            case Accepted():
                self._accept(event)
            case Tokens():
                self._take(event)
            case Finished():
                self._finish(event)
            case Failed():
                self._fail(event)

    def _accept(self, event: Accepted) -> None:
        if self.accepted is not None:
            self._broken("accepted once", "a second Accepted")
        if event.prompt_tokens != len(self.generation.prompt_ids):
            self._broken("usage as the oracle's", f"{event.prompt_tokens} prompt tokens")
        self._note("accepted", seed=event.seed)
        if event.cached_tokens.device:
            self._judge.saw("cached tokens")
        if event.cached_tokens.peer:
            self._judge.saw("cached tokens of a peer")
        self.accepted = event
        rules = self._rules
        self._oracle = Oracles(self.generation, event.seed, rules.context_length, rules.versions)
        self._in_time()

    def _take(self, event: Tokens) -> None:
        if self._oracle is None:
            self._broken("accepted once", "tokens before Accepted")
            return
        if event.first_position != len(self.received):
            text = f"position {event.first_position} instead of {len(self.received)}"
            self._broken("positions are 0, 1, 2", text)
        for token in event.ids:
            if self._oracle.end() is not None:
                self._broken("tokens as the oracle's", f"{token} after the end")
                return
            if possible := self._oracle.take(token):
                text = f"{token} at {len(self.received)} instead of {possible}"
                self._broken("tokens as the oracle's", text)
                return
            self.received.append(token)
        self._check_logprobs(event)
        self._note("tokens", position=event.first_position, count=len(event.ids))
        self._in_time()

    def _check_logprobs(self, event: Tokens) -> None:
        if self.generation.output.logprobs is None:
            return
        told = event.logprobs.chosen if event.logprobs is not None else []
        if told != [-float(token) for token in event.ids]:
            self._broken("tokens as the oracle's", f"logprobs {told} of {event.ids}")

    def _finish(self, event: Finished) -> None:
        if self._wrong is not None:
            self._broken("what is wrong is refused", f"finished instead of {self._wrong.name}")
        if self._oracle is None or self.accepted is None:
            self._broken("accepted once", "finished before Accepted")
            return
        if event.timeline.cache_miss is not None:
            self._judge.saw(f"cache miss {event.timeline.cache_miss.name}")
        end = self._oracle.end()
        if end is not event.reason:
            text = f"{event.reason.name} after {len(self.received)} tokens instead of {end}"
            self._broken("ends as the oracle's", text)
        cached, usage = self.accepted.cached_tokens, event.usage
        told = (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
        first_told = cached.device + cached.host + cached.peer + cached.service
        real = (len(self.generation.prompt_ids), first_told, len(self.received))
        if told != real:
            self._broken("usage as the oracle's", f"{told} instead of {real}")
        self._in_time()
        self._over("finished", reason=event.reason.name)

    def _fail(self, failed: Failed) -> None:
        self.failed = failed
        if failed.code not in {*self._rules.failures, self._wrong}:
            self._broken("fails with a reason", f"{failed.code.name}: {failed.message}")
        if not failed.message:
            self._broken("fails with a reason", f"{failed.code.name} without a word")
        timeout_ms = self.generation.quality_of_service.timeout_ms
        if failed.code is Code.DEADLINE_EXCEEDED and (
            timeout_ms is None or self._time() < self.asked_at + timeout_ms / 1000 - LATE_S
        ):
            self._broken("fails with a reason", "the deadline is not over yet")
        self._judge.saw(f"code {failed.code.name}")
        for refusal in refusals_of(failed):
            self._judge.saw(f"refusal {refusal}")
        self._over("failed", code=failed.code.name, message=failed.message)

    def _in_time(self) -> None:
        timeout_ms = self.generation.quality_of_service.timeout_ms
        if timeout_ms is not None and self._time() > self.asked_at + timeout_ms / 1000 + LATE_S:
            self._broken("deadlines are kept", f"an event after {timeout_ms} ms")

    def _over(self, end: str, **fields: str) -> None:
        self.is_over = True
        self.end = end
        self.ended_at = self._time()
        self._note(end, **fields)
        self.on_end()

    def _note(self, what: str, **fields: str | int | None) -> None:
        self._judge.history.note(what, request=self._name, **fields)

    def _broken(self, rule: str, text: str) -> None:
        self._judge.broken(rule, f"{self._name}: {text}")
