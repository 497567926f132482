"""Settings of an engine."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from services.engine.kv.cache_settings import CacheSettings
from services.shared.bounds import at_least, within
from services.shared.byte_size import ByteSize
from services.shared.settings import MetricsSettings, ServerSettings, TelemetrySettings
from services.shared.tls.settings import MeshSettings

ALIASES = {
    "MODEL_PATH": "executor.model_path",
    "MAX_CONCURRENT": "service.limits.max_concurrency",
    "KV_CACHE_SIZE": "executor.memory.kv_cache_bytes",
    "DEVICE_TYPE": "executor.device",
}


class Role(StrEnum):
    """What part of generations routers send to an engine; it can compute both all the same."""

    PREFILL = "prefill"
    DECODE = "decode"
    BOTH = "both"


class Device(StrEnum):
    """Where the model is computed; AUTO is CUDA where there is one, else CPU."""

    AUTO = "auto"
    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True, kw_only=True, slots=True)
class MemorySettings:
    """Memory of the KV pool, and of grammars that are kept for whoever asks again.

    Without `kv_cache_bytes` the pool takes the device's free memory less `reserve_ratio`, on a CPU
    at most 2 GiB. `deterministic_gc` collects garbage between steps only.
    """

    reserve_ratio: float = 0.15
    kv_cache_bytes: ByteSize | None = None
    grammar_cache_bytes: ByteSize = field(default_factory=lambda: ByteSize(2**30))
    deterministic_gc: bool = True

    def __post_init__(self) -> None:
        within("reserve_ratio", self.reserve_ratio, 0, 0.9)
        at_least("kv_cache_bytes", self.kv_cache_bytes, 1)
        at_least("grammar_cache_bytes", self.grammar_cache_bytes, 0)


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationSettings:
    """What a step of a simulated model takes, in microseconds, and how much the model says.

    Outputs end after `output_tokens`; without it, and where a grammar wants more, at their limit.
    """

    step_us: float = 5000.0
    token_us: float = 500.0
    output_tokens: int | None = None

    def __post_init__(self) -> None:
        at_least("step_us", self.step_us, 0)
        at_least("token_us", self.token_us, 0)
        at_least("output_tokens", self.output_tokens, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class ExecutorSettings:
    """The model and where it is computed.

    `accelerator_group` lists the CUDA devices by index; `threads` are those of one operation, by
    default one for each core. With `simulate` the folder's weights are not read and steps only
    take time; `context_length` may then exceed the model's.
    """

    model_path: Path
    device: Device = Device.AUTO
    accelerator_group: tuple[int, ...] = (0,)
    threads: int | None = None
    context_length: int | None = None
    role: Role = Role.BOTH
    memory: MemorySettings = MemorySettings()
    simulate: bool = False
    simulation: SimulationSettings = SimulationSettings()

    def __post_init__(self) -> None:
        if len(self.accelerator_group) != 1:
            raise ValueError(
                f"accelerator_group must have one device, got {len(self.accelerator_group)}"
            )
        within("accelerator_group", self.accelerator_group[0], 0, 1023)
        within("threads", self.threads, 1, 1024)
        at_least("context_length", self.context_length, 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchingSettings:
    """One step's bounds.

    `token_budget` bounds the tokens of a step; `max_wait_ms` is how long the first generation
    after an idle time waits for others.
    """

    max_batch_size: int = 64
    max_wait_ms: float = 0.0
    token_budget: int = 128

    def __post_init__(self) -> None:
        within("max_batch_size", self.max_batch_size, 1, 4096)
        within("max_wait_ms", self.max_wait_ms, 0, 60_000)
        if self.token_budget <= self.max_batch_size:
            raise ValueError(
                f"token_budget must be > max_batch_size {self.max_batch_size}, "
                f"got {self.token_budget}"
            )


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitSettings:
    """`max_concurrency` generations may run or wait; each for at most `request_timeout_ms`.

    Told to stop, it takes what comes for `settle_s`, then waits `drain_timeout_s` for what runs.
    Without a step for `stuck_after_s` while work waits, it is not alive.
    """

    max_concurrency: int = 1024
    request_timeout_ms: int = 600_000
    settle_s: float = 5.0
    drain_timeout_s: float = 30.0
    stuck_after_s: float = 60.0

    def __post_init__(self) -> None:
        within("max_concurrency", self.max_concurrency, 1, 1_000_000)
        within("request_timeout_ms", self.request_timeout_ms, 1, 2**31)
        within("settle_s", self.settle_s, 0, 3600)
        at_least("drain_timeout_s", self.drain_timeout_s, 0)
        at_least("stuck_after_s", self.stuck_after_s, 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class ServiceSettings:
    batching: BatchingSettings = BatchingSettings()
    limits: LimitSettings = LimitSettings()


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineSettings:
    """All settings of an engine, in the sections of its YAML file."""

    executor: ExecutorSettings
    server: ServerSettings = ServerSettings(port=9100)
    service: ServiceSettings = ServiceSettings()
    cache: CacheSettings = CacheSettings()
    security: MeshSettings = MeshSettings()
    metrics: MetricsSettings = MetricsSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
