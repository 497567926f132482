"""One replica as the router sees it: what it told, and what is on its way to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.source import TokenSource


class Status(StrEnum):
    """Whether a replica takes generations, and why not."""

    READY = "ready"
    STARTING = "starting"
    DRAINING = "draining"
    UNREACHABLE = "unreachable"
    MISMATCHED = "of another model"


_STATUS = {
    ReplicaState.STARTING: Status.STARTING,
    ReplicaState.READY: Status.READY,
    ReplicaState.DRAINING: Status.DRAINING,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What replicas must have in common to stand for each other."""

    model: str
    model_fingerprint: str
    tokenizer_fingerprint: str


class Replica:
    """The state of one replica; only the event loop's thread touches it.

    Attributes:
        load: as last told; None while its session is down.
        identity: as described in this session; None until then.
        outstanding_tokens: of our generations there, still to compute or to come.
        assigned: generations that it was given, ever.
    """

    def __init__(self, name: str, session: TokenSource) -> None:
        self.name = name
        self.session = session
        self.load: Load | None = None
        self.identity: Identity | None = None
        self.outstanding_tokens = 0
        self.assigned = 0
        self._of_others = 0

    def tell_load(self, load: Load | None) -> None:
        """Takes a load that came, or None when the session went down."""
        if load is None:
            self.identity = None
        else:
            self._of_others = max(0, load.outstanding_tokens - self.outstanding_tokens)
        self.load = load

    @property
    def expected_tokens(self) -> int:
        """Tokens before a new generation: ours by our own count, others' by the last load."""
        return self.outstanding_tokens + self._of_others

    def status(self, reference: Identity | None) -> Status:
        """Whether it takes generations of the model `reference`."""
        if self.load is None:
            return Status.UNREACHABLE
        if self.identity is None:
            return Status.STARTING
        if self.identity != reference:
            return Status.MISMATCHED
        return _STATUS[self.load.state]
