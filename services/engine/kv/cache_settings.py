"""Settings of the caches beyond an engine's pool."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from services.engine.kv.mooncake_settings import MooncakeSettings
from services.shared.bounds import at_least, within
from services.shared.byte_size import ByteSize

GIB = 2**30


class CacheType(StrEnum):
    """Where blocks are kept beyond the engines.

    EMBEDDED is a file that the engines of one machine share, DISTRIBUTED a store of its own.
    """

    NONE = "none"
    EMBEDDED = "embedded"
    DISTRIBUTED = "distributed"


class Sharing(StrEnum):
    """Who may find whose blocks."""

    TENANT = "tenant"
    GLOBAL = "global"


class Compression(StrEnum):
    NONE = "none"
    ZSTD = "zstd"


class Spread(StrEnum):
    """How blocks lie on the nodes of a store.

    SINGLE is one node; CLUSTER a Redis or Valkey cluster, of which the nodes are entries; ERASURE
    independent nodes, each with one fragment of every block.
    """

    SINGLE = "single"
    CLUSTER = "cluster"
    ERASURE = "erasure"


@dataclass(frozen=True, kw_only=True, slots=True)
class EmbeddedSettings:
    """The file of the machine and its bound; what was used longest ago gives way."""

    path: Path = Path(".tokenway/kv")
    max_bytes: ByteSize = ByteSize(4 * GIB)

    def __post_init__(self) -> None:
        at_least("max_bytes", self.max_bytes, 2**20)


@dataclass(frozen=True, kw_only=True, slots=True)
class TlsSettings:
    """Files in PEM; a key and certificate of ours where the store asks for them."""

    enabled: bool = False
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DistributedSettings:
    """A store that speaks the protocol of Redis and Valkey.

    With ERASURE there are `data_fragments + parity_fragments` nodes, and any `parity_fragments` of
    them may be lost. `timeout_s` bounds each operation on a node.
    """

    nodes: tuple[str, ...] = ()
    spread: Spread = Spread.SINGLE
    data_fragments: int = 4
    parity_fragments: int = 2
    username: str | None = None
    password_file: Path | None = None
    tls: TlsSettings = TlsSettings()
    timeout_s: float = 0.5
    connections: int = 4

    def __post_init__(self) -> None:
        within("data_fragments", self.data_fragments, 1, 16)
        within("parity_fragments", self.parity_fragments, 1, 8)
        within("timeout_s", self.timeout_s, 0.01, 60)
        within("connections", self.connections, 1, 64)


class Transport(StrEnum):
    """How blocks come from other engines.

    GRPC streams them. MOONCAKE reads what another engine has from its memory, and streams the rest.
    """

    GRPC = "grpc"
    MOONCAKE = "mooncake"


@dataclass(frozen=True, kw_only=True, slots=True)
class PeerSettings:
    """Blocks between engines.

    A fetch ends when no block has come for `patience_s`, when it has taken `limit_s`, or when the
    peer has had nothing to compute for it until `arrival_s`; `fetches` may read from this engine at
    a time.
    """

    patience_s: float = 5.0
    limit_s: float = 60.0
    arrival_s: float = 1.0
    fetches: int = 16
    transport: Transport = Transport.GRPC
    mooncake: MooncakeSettings = MooncakeSettings()

    def __post_init__(self) -> None:
        within("patience_s", self.patience_s, 0.01, 600)
        within("limit_s", self.limit_s, 0.01, 3600)
        within("arrival_s", self.arrival_s, 0, 60)
        within("fetches", self.fetches, 1, 1024)


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteSettings:
    """What is worth writing, and how much may wait for it.

    The blocks of a prompt's first `prefix_tokens` are written at once, others when they have been
    used again. `queue_blocks` may wait; more are left out.
    """

    prefix_tokens: int = 4096
    queue_blocks: int = 64

    def __post_init__(self) -> None:
        at_least("prefix_tokens", self.prefix_tokens, 0)
        within("queue_blocks", self.queue_blocks, 1, 65536)


@dataclass(frozen=True, kw_only=True, slots=True)
class CacheSettings:
    """Tiers beyond the pool: host memory, other engines, the service cache.

    `enabled` is followed while the engine runs: change it in the file and the switch follows.
    `read_timeout_s` bounds what a prompt waits for the service cache.
    """

    type: CacheType = CacheType.NONE
    enabled: bool = True
    sharing: Sharing = Sharing.TENANT
    host_bytes: ByteSize = ByteSize(0)
    read_timeout_s: float = 2.0
    ttl_s: float = 86_400.0
    compression: Compression = Compression.NONE
    embedded: EmbeddedSettings = EmbeddedSettings()
    distributed: DistributedSettings = DistributedSettings()
    peer: PeerSettings = PeerSettings()
    write: WriteSettings = WriteSettings()

    def __post_init__(self) -> None:
        at_least("host_bytes", self.host_bytes, 0)
        within("read_timeout_s", self.read_timeout_s, 0.001, 600)
        within("ttl_s", self.ttl_s, 1, 10 * 365 * 86_400)
        if self.type is CacheType.DISTRIBUTED:
            self._check_nodes()

    def _check_nodes(self) -> None:
        store = self.distributed
        count = len(store.nodes)
        if not count:
            raise ValueError("distributed.nodes must name at least one host:port, got none")
        if store.spread is Spread.SINGLE and count > 1:
            raise ValueError(f"distributed.nodes must name one host:port, got {count}")
        fragments = store.data_fragments + store.parity_fragments
        if store.spread is Spread.ERASURE and count != fragments:
            raise ValueError(
                f"distributed.nodes must name {fragments} nodes, one for each fragment, got {count}"
            )
