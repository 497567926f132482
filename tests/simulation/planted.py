"""Bugs that the tests plant in the real code, to see that worlds find them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from services.engine.blocks import BlockPool
from services.engine.kv.fill import Fill
from services.engine.kv.fill_desk import FillDesk
from services.engine.kv.filling import Filler
from services.engine.kv.landing import Landing
from services.engine.kv.leases import Lease, Leases
from services.engine.kv.peer_blocks import WholeBlock
from services.engine.kv.peer_supply import PeerSupply
from services.engine.kv.supply import Wanted
from services.router.admission.admission import Admission
from services.router.admission.fair_queue import FairQueue
from services.router.admission.fair_share import FairShare
from services.router.fleet.ejection import Cause, Ejection
from services.router.fleet.health import Health
from services.router.fleet.judge import Judge
from services.router.relay.deadline import Deadline
from services.router.relay.delivery import Delivery
from services.router.relay.leg import Leg
from services.router.relay.prefill import Prefill
from services.router.relay.relayed import Relayed
from services.router.relay.retry_budget import RetryBudget
from services.router.relay.setbacks import Setbacks
from services.router.status import Status, Verdict
from services.shared.stream.block_reader import BlockReader
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import Accepted, CancelReason, Event, Failed, Finished
from services.shared.stream.generation import Generation
from services.shared.stream.load import Load
from services.shared.stream.open_streams import OpenStreams

Method = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Planted:
    """A bug: one method of one class that does something else."""

    name: str
    owner: type
    method: str
    broken: Callable[[Method], Method]

    @contextmanager
    def planted(self) -> Iterator[None]:
        """The bug is there inside."""
        real = self.owner.__dict__[self.method]
        setattr(self.owner, self.method, self.broken(real))
        try:
            yield
        finally:
            setattr(self.owner, self.method, real)


def _off_by_one(real: Method) -> Method:
    def rest(self: Delivery, *args: Any) -> Generation:
        generation: Generation = real(self, *args)
        return replace(generation, generated_ids=list(generation.generated_ids)[:-1])

    return rest


def _another_seed(real: Method) -> Method:
    def rest(self: Delivery, *args: Any) -> Generation:
        generation: Generation = real(self, *args)
        return replace(generation, sampling=replace(generation.sampling, seed=None))

    return rest


def _any_version(real: Method) -> Method:
    def accept(self: Delivery, event: Accepted, version: str | None, *args: Any) -> None:
        del version
        real(self, event, None, *args)

    return accept


def _any_leg(real: Method) -> Method:
    def receive(self: Relayed, leg: Leg, event: Event) -> None:
        real(self, self._leg or leg, event)

    return receive


def _told_twice(real: Method) -> Method:
    def finish(self: Relayed, leg: Leg, event: Finished) -> None:
        sink = self._sink
        real(self, leg, event)
        sink(event)

    return finish


def _keeps_pending(_: Method) -> Method:
    def end(self: Leg, end: str) -> None:
        self._attempt.close(end)
        self.replica.running -= 1
        self.settle(self._left)

    return end


def _owners_forgotten(_: Method) -> Method:
    def release(self: BlockPool, blocks: list[int]) -> None:
        for block in reversed(blocks):
            self._owners[block] = 0
            if self._address_of[block] is None:
                self._free.append(block)
            else:
                self._cached.add(block)

    return release


def _published_again(_: Method) -> Method:
    def publish(self: BlockPool, block: int, address: bytes, _: str = "") -> None:
        self._block_at[address] = block
        self._address_of[block] = address

    return publish


def _still_found(real: Method) -> Method:
    def evict(self: BlockPool) -> int:
        known = list(self._address_of)
        block: int = real(self)
        address = known[block]
        if address is not None:
            self._block_at[address] = block
            self._address_of[block] = address
        return block

    return evict


def _gaps_ignored(_: Method) -> Method:
    def receive(self: BlockReader, events: BlockEvents) -> None:
        self._asked = self._asked and not events.snapshot
        if not self._asked:
            self._sink(events)

    return receive


def _never_silent(real: Method) -> Method:
    def verdict(self: Health, now: float) -> Verdict:
        found: Verdict = real(self, now)
        idle = found.status in (Status.STUCK, Status.DEGRADED)
        return Verdict(Status.READY, "") if idle else found

    return verdict


def _always_in_step(real: Method) -> Method:
    def hear(self: Health, load: Load, now: float) -> None:
        real(self, replace(load, progress_age_ms=0), now)

    return hear


def _failures_stay(real: Method) -> Method:
    def wipe(self: Ejection, *causes: Cause) -> None:
        real(self, *(cause for cause in causes if cause is not Cause.FAILURE))

    return wipe


def _no_cancel(real: Method) -> Method:
    def cancel(self: OpenStreams, stream_id: int, reason: CancelReason) -> None:
        if reason is not CancelReason.MOVED:
            real(self, stream_id, reason)

    return cancel


def _returns(value: object) -> Callable[[Method], Method]:
    return lambda _: lambda *_args, **_kwargs: value


def _accounts_stand_still(_: Method) -> Method:
    def serve(self: FairShare[str], key: str, tokens: float, floor: float = 0.0) -> float:
        del tokens
        return max(self._wanting[key], floor)

    return serve


def _caller_points(real: Method) -> Method:
    def rest(self: Delivery, *args: Any) -> Generation:
        generation: Generation = real(self, *args)
        asked = self._generation.routing.prefill_peer
        return replace(generation, routing=replace(generation.routing, prefill_peer=asked))

    return rest


def _prefill_decides(real: Method) -> Method:
    def receive(self: Prefill, event: Event) -> None:
        over = self._is_over
        real(self, event)
        if isinstance(event, Failed) and not over:
            self._for.replica.tell_failure(self._around.clock.time(), event)
            self._for.cancel(CancelReason.UNSPECIFIED)

    return receive


def _freed_while_written(real: Method) -> Method:
    def settle(self: Filler, fill: Fill, landing: Landing) -> None:
        landing.copying = None
        real(self, fill, landing)

    return settle


def _lent_and_forgotten(_: Method) -> Method:
    def grant(self: Leases, found: list[int]) -> Lease | None:
        del self
        return Lease(found, lambda: None) if found else None

    return grant


def _asks_anyway(_: Method) -> Method:
    def can_supply(self: PeerSupply, wanted: Wanted) -> bool:
        del self
        return wanted.peer is not None

    return can_supply


def _another_address(real: Method) -> Method:
    def settle(self: FillDesk, fill: Fill) -> None:
        fill.blanks.reverse()
        real(self, fill)

    return settle


PLANTED = (
    Planted("a continuation begins one token too early", Delivery, "rest", _off_by_one),
    Planted("a continuation has another seed", Delivery, "rest", _another_seed),
    Planted("a continuation has another version", Delivery, "accept", _any_version),
    Planted("what a lost replica sends late is taken", Relayed, "_receive", _any_leg),
    Planted("an end is told twice", Relayed, "_finish", _told_twice),
    Planted("a deadline is not kept", Relayed, "_expire", _returns(None)),
    Planted("a deadline is not passed on", Deadline, "left_ms", _returns(None)),
    Planted("a retry goes where it failed", Setbacks, "avoiding", _returns(frozenset())),
    Planted("the retry budget is never used up", RetryBudget, "spend", _returns(True)),
    Planted("pending tokens are not given back", Leg, "end", _keeps_pending),
    Planted("what moves runs on where it was", OpenStreams, "cancel", _no_cancel),
    Planted("too many are ejected", Judge, "_ejectable", _returns(1000)),
    Planted("failures count that were no row", Ejection, "wipe", _failures_stay),
    Planted("silence is health", Health, "verdict", _never_silent),
    Planted("a step loop that stands still is health", Health, "hear", _always_in_step),
    Planted("the queue has no bound", FairQueue, "is_full", lambda _: property(lambda _: False)),  # type: ignore[arg-type,return-value]
    Planted("a free place is given to nobody", Admission, "pump", _returns(None)),
    Planted("what tenants had is forgotten", FairShare, "serve", _accounts_stand_still),
    Planted("a block is freed with its first owner", BlockPool, "release", _owners_forgotten),
    Planted("a block is published twice", BlockPool, "publish", _published_again),
    Planted("an evicted block can still be found", BlockPool, "_evict", _still_found),
    Planted("lost block events are not missed", BlockReader, "receive", _gaps_ignored),
    Planted("an engine goes where a caller points", Delivery, "rest", _caller_points),
    Planted("a prefill is not cancelled", Prefill, "stop", _returns(None)),
    Planted("a lost prefill is work for nobody", Leg, "lose_prefill", _returns(None)),
    Planted("a lost prefill ends its generation", Prefill, "_receive", _prefill_decides),
    Planted("blocks that were corrupt are used", WholeBlock, "is_sound", _returns(True)),
    Planted("blocks that came are known as others", FillDesk, "settle", _another_address),
    Planted("a lease keeps nothing", Leases, "grant", _lent_and_forgotten),
    Planted("a lease never ends", Lease, "end", _returns(True)),
    Planted("blanks are freed while they are written", Filler, "_settle", _freed_while_written),
    Planted("a cache that is off is asked", PeerSupply, "can_supply", _asks_anyway),
)
