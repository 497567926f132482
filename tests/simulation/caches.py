"""What an engine has beyond its pool: the real way in, the real lending, the real fetches."""

from __future__ import annotations

from collections.abc import Callable

from services.engine.kv.cache_settings import PeerSettings
from services.engine.kv.device_tier import DeviceTier
from services.engine.kv.figures import new_figures
from services.engine.kv.filling import Filler
from services.engine.kv.keepers import Keepers
from services.engine.kv.lending import Lending
from services.engine.kv.peer_supply import PeerSupply
from services.engine.kv.servicer import KvServicer
from services.engine.kv.switch import CacheSwitch
from services.engine.kv.tier import Tier
from services.engine.loop import EngineLoop
from services.shared.tasks import Tasks
from services.shared.tls.way import CLEAR
from tests.simulation.kv import KvRunner
from tests.simulation.kv_memory import KvMemory
from tests.simulation.kv_wires import Channels, KvWires
from tests.simulation.threads import Copiers

LAYOUT = "layout"
REMEMBERED = 4096


class Caches:
    """Those of one process.

    Args:
        wires: to the other engines.
        wrong: told what is not as it must be.

    Attributes:
        on_end: called when the process has ended.
    """

    def __init__(
        self,
        steps: EngineLoop,
        runner: KvRunner,
        rules: PeerSettings,
        wires: KvWires,
        wrong: Callable[[str], None],
    ) -> None:
        self.memory = memory = KvMemory(runner.blocks, steps.scheduler.pool, wrong)
        self.switch = switch = CacheSwitch()
        self.figures = figures = new_figures()
        peers = PeerSupply(LAYOUT, memory.block_bytes, switch, figures[Tier.PEER], rules, way=CLEAR)
        peers._channels = Channels(wires, self._may_call)  # type: ignore[assignment]
        self._wrong = wrong
        self._tasks = Tasks(self._crashed)
        self.filler = Filler(
            steps, memory, [peers], figures=figures, switch=switch, tasks=self._tasks
        )
        self.filler._copiers = Copiers(wires.loop)
        self.lending = Lending(steps, memory, LAYOUT, rules)
        self.servicer = KvServicer(self.lending)
        self.on_end: dict[object, Callable[[], None]] = {}
        device = DeviceTier(figures[Tier.DEVICE], steps.scheduler.pool.size, REMEMBERED)
        steps.scheduler.pool.on_evict = lambda _, address: device.evicted(address)
        steps.scheduler.keeper = Keepers(device)

    @property
    def fills(self) -> int:
        """Sequences whose blocks are on their way."""
        return len(self.filler._fills)

    @property
    def readers(self) -> int:
        """Who reads from this engine."""
        return len(self.lending._followers) + len(self.lending._loans)

    def _may_call(self) -> None:
        if not self.switch.enabled:
            self._wrong("a fetch begins while the cache is off")

    def _crashed(self, name: str, error: Exception) -> None:
        self._wrong(f"{name} ended by {error!r}")

    def end(self) -> None:
        """The process is dead."""
        for task in list(self._tasks._running):
            task.cancel()
        for ended in list(self.on_end.values()):
            ended()
