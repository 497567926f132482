"""The router's end of the way to one replica."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

import grpc
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as rpc

from services.router.connections.cache_switch import CacheFollower, CacheSwitch
from services.router.connections.cuttable import Cuttable
from services.router.fleet.fleet import Fleet
from services.router.fleet.replica import Replica
from services.router.replica_spec import ReplicaSpec
from services.router.replica_wire import role_from
from services.router.status import Identity
from services.shared.grpc_traffic import Traffic
from services.shared.stream.client_session import ClientSession
from services.shared.stream.load import Load
from services.shared.tls.way import Way

DESCRIBE_TIMEOUT_S = 5.0
FIRST_PAUSE_S = 0.05
LAST_PAUSE_S = 2.0

_log = logging.getLogger(__name__)


class Connection:
    """Keeps a session to a replica and tells the fleet of its loads and its identity.

    Attributes:
        cache: tells it whether the service cache is on.
        description: as last told; None while the session is down.
    """

    def __init__(
        self, spec: ReplicaSpec, fleet: Fleet, cache: CacheSwitch, way: Way, traffic: Traffic
    ) -> None:
        self.address = address = spec.address
        self.description: pb.DescribeResponse | None = None
        self.cache = CacheFollower(cache, lambda: self.engine, address)
        self._session = ClientSession(
            way,
            address,
            self._tell_load,
            on_blocks=partial(fleet.tell_blocks, address),
            on_fault=partial(fleet.tell_fault, address),
            traffic=traffic,
        )
        self._cuttable = Cuttable(self._session.run)
        self._fleet = fleet
        self._revision: int | None = None
        self._is_new = asyncio.Event()
        fleet.add(Replica(address, self._session, weight=spec.weight, lanes=spec.lanes))

    @property
    def engine(self) -> rpc.EngineServiceStub:
        """For calls about the replica as a whole."""
        return rpc.EngineServiceStub(self._session.channel)

    async def run(self) -> None:
        """Ends by cancellation."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cuttable.run())
            group.create_task(self._describe())
            group.create_task(self.cache.run())

    async def close(self) -> None:
        await self._session.close()

    def cut(self, duration_s: float) -> None:
        """Ends the session, and begins none for so long."""
        self._cuttable.cut(duration_s)

    def _tell_load(self, load: Load | None) -> None:
        revision = None if load is None else load.description_revision
        if revision is None:
            self.description = None
        elif revision != self._revision:
            self._is_new.set()
        self._revision = revision
        self._fleet.tell_load(self.address, load)

    async def _describe(self) -> None:
        """Asks who the replica is, again when that may have changed: it restarts as another.

        A router has another model when its engines have.
        """
        while True:
            await self._is_new.wait()
            self._is_new.clear()
            description = await self._description()
            if description is None:
                continue
            await self.cache.greet()  # before it is given anything
            if self._is_new.is_set() or self._revision is None:
                continue
            self.description = description
            identity = Identity(
                model=description.model,
                version=description.model_fingerprint,
                tokenizer_fingerprint=description.tokenizer_fingerprint,
                layout_id=description.kv_layout_id,
                block_size=description.block_size,
                shares_blocks=description.shares_blocks,
                role=role_from(description.role),
            )
            self._fleet.tell_identity(self.address, identity)

    async def _description(self) -> pb.DescribeResponse | None:
        """What the replica says, asked until it knows; None when its session went down."""
        pause_s = FIRST_PAUSE_S
        while self._revision is not None:
            try:
                return await self.engine.Describe(pb.DescribeRequest(), timeout=DESCRIBE_TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                _log.info("%s does not describe itself: %s", self.address, error.details())
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LAST_PAUSE_S)
        return None
