"""The real parts put together: the one place that knows how routers and engines are built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from services.engine.admission import Admission as EngineAdmission
from services.engine.admission import ServedModel
from services.engine.blocks import BlockPool
from services.engine.collector import Collector
from services.engine.engine import Engine
from services.engine.grammar_queue import Done, GrammarQueue
from services.engine.loop import EngineLoop, Results
from services.engine.nvml import DeviceMonitor
from services.engine.scheduler import Limits, Scheduler
from services.engine.sequence import Sequence
from services.engine.stopping import Stopper
from services.router.admission import Admission
from services.router.fleet import Fleet, FleetRules
from services.router.health import HealthRules
from services.router.relay import Relay
from services.router.replica import Replica
from services.router.status import Identity
from services.shared.stream.blocks import BlockEvents
from services.shared.stream.events import Cancel
from services.shared.stream.generation import Generation
from services.shared.stream.load import Load
from services.shared.stream.source import Submission
from tests.simulation.automaton import Automaton
from tests.simulation.engine import Parts
from tests.simulation.kv import KvRunner
from tests.simulation.legs import Counts
from tests.simulation.life_clock import LifeClock
from tests.simulation.notes import Notes
from tests.simulation.oracle import END_OF_TEXT_IDS, VOCABULARY
from tests.simulation.parameters import EngineParameters
from tests.simulation.requests import MODEL
from tests.simulation.session import Session
from tests.simulation.virtual_time import VirtualLoop

TIMEOUT_MS = 600_000
FINGERPRINT = "weights"
LAYOUT = "layout"
IDENTITY = Identity(model=MODEL, version=FINGERPRINT, tokenizer_fingerprint="words")


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


class _NoCollector(Collector):
    def after_step(self) -> None:
        """The world's objects are not the engine's garbage."""

    def when_idle(self) -> None:
        """Nor are they when it rests."""


def engine_parts(
    parameters: EngineParameters,
    random: Random,
    publish: Callable[[Results], None],
    wrong: Callable[[str], None],
) -> Parts:
    """An engine whose step loop is called step by step, on the event loop's thread."""
    model = ServedModel(
        name=MODEL,
        fingerprint=FINGERPRINT,
        vocabulary_size=VOCABULARY,
        context_length=parameters.context_length,
        end_of_text_ids=END_OF_TEXT_IDS,
        kv_layout_id=LAYOUT,
    )
    stopper = Stopper(END_OF_TEXT_IDS, parameters.context_length)
    runner = KvRunner(parameters.blocks, parameters.block_size, stopper, wrong)
    limits = Limits(max_batch_size=parameters.max_batch_size, token_budget=parameters.token_budget)
    scheduler = Scheduler(BlockPool(parameters.blocks, parameters.block_size), limits)
    steps = EngineLoop(scheduler, runner, stopper, publish)
    steps.collector = _NoCollector()
    engine = Engine(
        _Seeds(model, random), steps, DeviceMonitor(0), parameters.max_concurrency, _Automata()
    )
    return Parts(engine, steps, runner)


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """What the router believes of a replica."""

    name: str
    status: str
    counts: Counts


class Router:
    """The domain parts of one router."""

    def __init__(self, loop: VirtualLoop, random: Random, notes: Notes) -> None:
        self.clock = LifeClock(loop)
        self.fleet = Fleet(self.clock, FleetRules(health=_health_rules(random)))
        self.admission = Admission(self.fleet)
        self.relay = Relay(self.fleet, self.admission, self.clock, notes)
        self.fleet.evacuate = self.relay.evacuate
        self.fleet.start()
        self._names: list[str] = []

    def submit(self, submission: Submission) -> Cancel:
        return self.relay.submit(submission)

    def add(self, name: str, session: Session) -> None:
        self._names.append(name)
        self.fleet.add(Replica(name, session))

    def tell_load(self, name: str, load: Load | None) -> None:
        self.fleet.tell_load(name, load)

    def tell_identity(self, name: str, identity: Identity) -> None:
        self.fleet.tell_identity(name, identity)

    def tell_blocks(self, name: str, events: BlockEvents) -> None:
        """The router does not look at them yet."""

    def tell_fault(self, name: str, fault: str) -> None:
        """The router does not count them yet."""

    async def drain(self, timeout_s: float) -> None:
        await self.relay.drain(timeout_s)

    def close(self) -> None:
        """Nothing of it goes on."""
        self.fleet.stop()
        self.clock.end()

    @property
    def waiting(self) -> int:
        return self.admission.waiting

    @property
    def running(self) -> int:
        """Generations that have not ended."""
        return len(self.relay._running)

    def replicas(self) -> Iterator[ReplicaFigures]:
        for name in self._names:
            replica = self.fleet[name]
            counts = Counts(replica.running, replica.outstanding_tokens, replica.pending_tokens)
            yield ReplicaFigures(name, replica.status.value, counts)


def _health_rules(random: Random) -> HealthRules:
    """Such as an operator may set; what is told about them holds for all."""
    degraded_after_s = random.uniform(1.5, 3)
    return HealthRules(
        degraded_after_s=degraded_after_s,
        stuck_after_s=degraded_after_s + random.uniform(0, 5),
        load_valid_s=random.uniform(1.5, 4),
        slow_first_token_s=random.choice((0.5, 30)),
        ejection_threshold=random.randint(1, 4),
        ejection_s=random.uniform(0.5, 5),
        max_ejected_share=random.choice((0, 0.3, 0.5, 1)),
    )
