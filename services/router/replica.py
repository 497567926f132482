"""One replica as the router sees it: what it told, and what is on its way to it."""

from __future__ import annotations

from services.router.candidate import Candidate
from services.router.demand import Demand, Lane
from services.router.status import Identity, Status
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.source import TokenSource

_STATUS = {
    ReplicaState.STARTING: Status.STARTING,
    ReplicaState.READY: Status.READY,
    ReplicaState.DRAINING: Status.DRAINING,
}


class Replica:
    """The state of one replica; only the event loop's thread touches it.

    Attributes:
        epoch: counts its sessions; what came by an earlier one is of no meaning any more.
        load: as last told; None while its session is down.
        identity: as described in this session; None until then.
        running: our generations there.
        outstanding_tokens: of these, still to compute or to come.
        pending: of these, by lane, of prompts whose first token has not come.
        assigned: generations that it was given, ever.
    """

    def __init__(self, name: str, session: TokenSource) -> None:
        self.name = name
        self.session = session
        self.epoch = 0
        self.load: Load | None = None
        self.identity: Identity | None = None
        self.running = 0
        self.outstanding_tokens = 0
        self.pending = dict.fromkeys(Lane, 0)
        self.assigned = 0
        self._of_others = 0

    def tell_load(self, load: Load | None) -> None:
        """Takes a load that came, or None when the session went down."""
        if load is None:
            self.identity = None
        else:
            if self.load is None:
                self.epoch += 1
            self._of_others = max(0, load.outstanding_tokens - self.outstanding_tokens)
        self.load = load

    @property
    def expected_tokens(self) -> int:
        """Tokens before a new generation: ours by our own count, others' by the last load."""
        return self.outstanding_tokens + self._of_others

    def status(self, reference: Identity | None) -> Status:
        """Whether it takes generations of the model `reference`."""
        if self.load is None:
            return Status.GONE
        if self.identity is None:
            return Status.STARTING
        if self.identity != reference:
            return Status.MISMATCHED
        return _STATUS[self.load.state]

    def candidate(self, demand: Demand, reference: Identity | None) -> Candidate:
        """The replica as `demand` meets it now."""
        return Candidate(
            name=self.name,
            epoch=self.epoch,
            status=self.status(reference),
            version=self.identity.version if self.identity else None,
            expected_tokens=self.expected_tokens,
            pending_tokens=sum(self.pending.values()),
            assigned=self.assigned,
        )
