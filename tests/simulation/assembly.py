"""The real parts put together: the one place that knows how routers and engines are built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from random import Random

from services.engine.admission import Admission as EngineAdmission
from services.engine.admission import ServedModel
from services.engine.block_feed import BlockFeed
from services.engine.blocks import BlockPool
from services.engine.engine import Engine
from services.engine.grammar_queue import Done, GrammarQueue
from services.engine.loop import Results
from services.engine.nvml import DeviceMonitor
from services.engine.scheduler import Limits, Scheduler
from services.engine.sequence import Sequence
from services.engine.stopping import Stopper
from services.router.admission.admission import Admission
from services.router.balancing.balancer import Balancer
from services.router.balancing.versions import Versions
from services.router.demand import Lane, demand_of
from services.router.fleet.fleet import Fleet
from services.router.fleet.fleet_rules import FleetRules
from services.router.fleet.replica import Replica
from services.router.fleet.watch import watching
from services.router.relay.relay import Relay
from services.router.relay.retry_budget import RetryBudget
from services.router.status import Identity, Role, Status
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import Cancel
from services.shared.stream.generation import Generation
from services.shared.stream.load import Load
from services.shared.stream.source import Submission
from tests.simulation.automaton import Automaton
from tests.simulation.caches import LAYOUT, Caches
from tests.simulation.engine import DrivenLoop, Parts
from tests.simulation.kv import KvRunner
from tests.simulation.kv_wires import KvWires
from tests.simulation.life_clock import LifeClock
from tests.simulation.notes import Notes
from tests.simulation.oracle import END_OF_TEXT_IDS, VOCABULARY
from tests.simulation.parameters import EngineParameters
from tests.simulation.replica_figures import ReplicaFigures
from tests.simulation.requests import MODEL
from tests.simulation.router_rules import RouterRules
from tests.simulation.sent import Counts
from tests.simulation.session import Session
from tests.simulation.virtual_time import VirtualLoop

TIMEOUT_MS = 600_000


def identity(parameters: EngineParameters, version: str) -> Identity:
    """What an engine says that it serves."""
    return Identity(
        model=MODEL,
        version=version,
        tokenizer_fingerprint="words",
        layout_id=LAYOUT,
        block_size=parameters.block_size,
        role=parameters.role,
    )


class _Seeds(EngineAdmission):
    """Chooses seeds by the world's random numbers."""

    def __init__(self, model: ServedModel, random: Random) -> None:
        super().__init__(model, TIMEOUT_MS)
        self._random = random

    def admit(self, generation: Generation) -> Sequence:
        sequence = super().admit(generation)
        if generation.sampling.seed is None:
            sequence.seed = self._random.getrandbits(64)
        return sequence


class _Automata(GrammarQueue):
    """Compiles at once and on no thread."""

    def __init__(self) -> None:
        """Starts no thread."""

    def put(self, sequence: Sequence, _: Done) -> None:  # type: ignore[override]
        matcher = Automaton.of(sequence.generation.constraint)
        if matcher is not None:
            for token in sequence.generation.generated_ids:
                matcher.accept(token)
        sequence.matcher = matcher


@dataclass(frozen=True, slots=True)
class Around:
    """What an engine has around it.

    Args:
        wrong: told what is not as it must be.
        wires: to the other engines.
    """

    random: Random
    wrong: Callable[[str], None]
    wires: KvWires


def engine_parts(
    parameters: EngineParameters,
    version: str,
    around: Around,
    publish: Callable[[Results], None],
) -> Parts:
    """An engine whose step loop is called step by step, on the event loop's thread."""
    model = ServedModel(
        name=MODEL,
        fingerprint=version,
        vocabulary_size=VOCABULARY,
        context_length=parameters.context_length,
        end_of_text_ids=END_OF_TEXT_IDS,
        kv_layout_id=LAYOUT,
    )
    stopper = Stopper(END_OF_TEXT_IDS, parameters.context_length)
    pool = BlockPool(parameters.blocks, parameters.block_size)
    runner = KvRunner(pool, version, stopper, around.wrong)
    limits = Limits(max_batch_size=parameters.max_batch_size, token_budget=parameters.token_budget)
    scheduler = Scheduler(pool, limits)
    steps = DrivenLoop(scheduler, runner, stopper, publish)
    caches = None
    if parameters.peers is not None:
        caches = Caches(steps, runner, parameters.peers, around.wires, around.wrong)
    engine = Engine(
        _Seeds(model, around.random),
        steps,
        DeviceMonitor(0),
        parameters.max_concurrency,
        _Automata(),
        entry=None if caches is None else caches.filler,
    )
    return Parts(engine, steps, BlockFeed(steps), runner, caches)


class Router:
    """The domain parts of one router."""

    def __init__(self, loop: VirtualLoop, random: Random, notes: Notes, rules: RouterRules) -> None:
        self.rules = rules
        self.clock = clock = LifeClock(loop)
        versions = Versions(rules.balancing.versions)
        fleet_rules = FleetRules(
            router=random.randbytes(8).hex(),
            versions=versions,
            health=rules.health,
            room=rules.queue.room(),
            long_prompt_tokens=rules.balancing.long_prompt_tokens,
            prefill=rules.prefill,
        )
        self.fleet = Fleet(clock, fleet_rules, self._pump)
        balancer = Balancer(rules.balancing.comparison(random.randbytes(16)), versions)
        queue = rules.queue.admission()
        self.admission = Admission(self.fleet, clock, random.random, queue, balancer)
        budget = RetryBudget(rules.retry)
        self.relay = Relay(self.fleet, self.admission, clock, notes, budget=budget)
        self.fleet.evacuate = self.relay.evacuate
        self._watch = ExitStack()
        self._watch.enter_context(watching(self.fleet, clock))

    def _pump(self) -> None:
        self.admission.pump()

    def submit(self, submission: Submission) -> Cancel:
        return self.relay.submit(submission)

    def add(self, session: Session, pool: Lane | None) -> None:
        lanes = frozenset(Lane) if pool is None else frozenset({pool})
        self.fleet.add(Replica(session.name, session, lanes=lanes))

    def remove(self, name: str) -> None:
        self.fleet.remove(name)

    def drain_replica(self, name: str, *, undo: bool) -> None:
        self.fleet.drain(name, undo=undo)

    def set_weight(self, name: str, weight: float) -> None:
        self.fleet.set_weight(name, weight)

    def running_at(self, name: str) -> int:
        return self.fleet[name].running

    @property
    def identity(self) -> Identity | None:
        """What it says that it serves."""
        return self.fleet.identity

    def load(self) -> Load:
        return self.relay.load()

    def cached_at(self, name: str, generation: Generation) -> int:
        """Tokens that are known to be cached of a generation."""
        return self.fleet.index.cached_tokens(demand_of(generation, 1)).get(name, 0)

    def whole_at(self, name: str, generation: Generation) -> int:
        """Tokens in whole blocks before the last token of a generation."""
        layout = self.fleet.index.layout(name)
        size = 1 if layout is None else layout.block_size
        tokens = len(generation.prompt_ids) + len(generation.generated_ids)
        return (tokens - 1) // size * size

    def known_blocks(self, name: str) -> set[bytes]:
        """Addresses that are known to be found at a replica."""
        holder = self.fleet.index._holders.get(name)
        return set() if holder is None else set(holder.addresses)

    def tell_load(self, name: str, load: Load | None) -> None:
        self.fleet.tell_load(name, load)

    def tell_identity(self, name: str, identity: Identity) -> None:
        self.fleet.tell_identity(name, identity)

    def tell_blocks(self, name: str, events: BlockEvents) -> None:
        self.fleet.tell_blocks(name, events)

    def tell_fault(self, name: str, fault: str) -> None:
        self.fleet.tell_fault(name, fault)

    async def drain(self, timeout_s: float) -> None:
        await self.relay.drain(timeout_s)

    def cease(self) -> None:
        """Looks no more at replicas, and probes none."""
        self._watch.close()

    def close(self) -> None:
        """Nothing of it goes on."""
        self.cease()
        self.clock.end()

    @property
    def weights(self) -> dict[str, float]:
        """Of tenants that have one."""
        return {entry.tenant: entry.weight for entry in self.rules.queue.tenant_weights}

    @property
    def waiting(self) -> int:
        return self.admission.waiting

    def is_place_empty(self) -> bool:
        """Whether a ready replica has nothing of ours to do while one waits that could go there."""
        idle = [
            one
            for one in self.fleet
            if one.status is Status.READY
            and one.identity is not None
            and not one.running
            and not one.refuses
            and one.weight > 0
            and one.lanes == frozenset(Lane)
            and one.role is not Role.PREFILL
            and self.fleet.rules.versions.takes_new(one.identity.version)
        ]
        return bool(idle) and any(
            not applicant.demand.avoid and applicant.demand.version is None
            for applicant in self.admission._waiting
        )

    @property
    def new_waiting(self) -> int:
        """Those that had no place yet, whose number is bounded."""
        return len(self.admission._queue)

    @property
    def running(self) -> int:
        """Generations that have not ended."""
        return len(self.relay._running)

    def replicas(self) -> Iterator[ReplicaFigures]:
        for replica in self.fleet:
            counts = Counts(replica.running, replica.outstanding_tokens, replica.pending_tokens)
            described = replica.identity is not None and replica.status is not Status.MISMATCHED
            ejection = replica.health.ejection
            status = replica.status.value
            yield ReplicaFigures(replica.name, status, described, ejection, counts)
