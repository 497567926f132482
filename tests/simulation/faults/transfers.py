"""What happens to blocks on their way from one engine to another, and to who computes them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from tokenway.kv.v1 import kv_pb2 as pb

from services.engine.kv.record import checksum, layout_digest
from services.router.status import Role
from services.shared.errors import ServiceError
from tests.simulation.caches import LAYOUT, Caches
from tests.simulation.engine import Process
from tests.simulation.engine_host import EngineHost
from tests.simulation.faults.fault import Fault
from tests.simulation.kv_wires import Context

PATIENCE_S = 5.0
BORROWED = 6
LOOKS, LOOK_S = 50, 0.01


class _Transfer(Fault):
    """Strikes engines that move blocks."""

    def hosts(self) -> list[EngineHost]:
        hosts = self.world.machines.hosts
        return [host for host in hosts if host.caches is not None]

    def busy(self) -> bool:
        return bool(self.hosts())

    def look(
        self, act: Callable[[EngineHost], None], moves: Callable[[Caches], bool], looks: int = LOOKS
    ) -> None:
        """Acts as soon as blocks move at some host, or after a while."""
        hosts = self.hosts()
        moving = [host for host in hosts if host.caches is not None and moves(host.caches)]
        if moving or (hosts and not looks):
            act(self.random.choice(moving or hosts))
        elif looks:
            self.world.loop.call_later(LOOK_S, self.look, act, moves, looks - 1)


class Late(_Transfer):
    """Blocks take long."""

    def strike(self) -> bool:
        wires = self.world.machines.wires
        wires.extra_s = self.random.expovariate(2)

        def heal() -> None:
            wires.extra_s = 0.0

        self.later(1.0, heal)
        return self.busy()


class _Spoil(_Transfer):
    """Changes the next message that brings blocks."""

    def strike(self) -> bool:
        self.world.machines.wires.spoil = self._spoilt
        return self.busy()

    def spoil(self, part: pb.BlockPart) -> None:
        raise NotImplementedError

    def _spoilt(self, message: pb.FetchResponse) -> pb.FetchResponse | None:
        spoilt = pb.FetchResponse()
        spoilt.CopyFrom(message)
        self.spoil(self.random.choice(spoilt.parts))
        return spoilt


class Cut(_Spoil):
    """The stream breaks off."""

    def _spoilt(self, _: pb.FetchResponse) -> None:
        return None


class Corrupt(_Spoil):
    """A bit is another."""

    def spoil(self, part: pb.BlockPart) -> None:
        data = bytearray(part.data)
        data[self.random.randrange(len(data))] ^= 1 << self.random.randrange(8)
        part.data = bytes(data)


class Truncated(_Spoil):
    """Bytes are missing at the end."""

    def spoil(self, part: pb.BlockPart) -> None:
        part.data = part.data[: self.random.randrange(len(part.data))]


class OtherBlock(_Spoil):
    """It is a block, whole and right, of another address."""

    def spoil(self, part: pb.BlockPart) -> None:
        address = self.random.randbytes(16)
        part.checksum = checksum(address, layout_digest(LAYOUT), part.data)


class OtherLife(_Spoil):
    """In the middle of a stream another process answers."""

    def _spoilt(self, message: pb.FetchResponse) -> pb.FetchResponse:
        spoilt = pb.FetchResponse(incarnation=message.incarnation ^ 1)
        spoilt.parts.extend(message.parts)
        return spoilt


class CacheSwitched(_Transfer):
    """An engine reads nothing beyond its own memory for a while, often from mid-transfer on."""

    def strike(self) -> bool:
        self.look(self._switch, lambda caches: bool(caches.fills or caches.readers))
        return self.busy()

    def _switch(self, host: EngineHost) -> None:
        caches = host.caches
        if caches is not None:
            caches.switch.set(enabled=False)
            self.later(1.0, partial(caches.switch.set, enabled=True))


class PrefillKilled(_Transfer):
    """An engine that is for prompts dies, before, while or after it computes one."""

    def hosts(self) -> list[EngineHost]:
        return [host for host in super().hosts() if host.parameters.role is Role.PREFILL]

    def strike(self) -> bool:
        self.look(self._kill, lambda caches: caches.readers > 0)
        return self.busy()

    def _kill(self, host: EngineHost) -> None:
        host.kill()
        self.later(0.5, host.start)


class Borrowed(_Transfer):
    """Somebody reads blocks under a lease that may end before the reading does."""

    def strike(self) -> bool:
        if not self.busy():
            return False
        host = self.random.choice(self.hosts())
        if host.process is None or host.caches is None:
            return False
        addresses = list(host.process.parts.steps.scheduler.pool._block_at)[:BORROWED]
        self.world.start(self._borrow(host.process, host.caches, addresses))
        return bool(addresses)

    async def _borrow(self, process: Process, caches: Caches, addresses: list[bytes]) -> None:
        try:
            async with asyncio.timeout(PATIENCE_S):
                await self._read(process, caches, addresses)
        except (TimeoutError, ServiceError):
            pass  # the engine is stuck, dead or busy

    async def _read(self, process: Process, caches: Caches, addresses: list[bytes]) -> None:
        servicer, judge, context = caches.servicer, self.world.judge, Context(())
        request = pb.LookupRequest(
            kv_layout_id=LAYOUT,
            addresses=b"".join(addresses),
            lease_ms=self.random.randint(1, 500),
        )
        answer = await servicer.Lookup(request, context)  # type: ignore[arg-type]  # all it reads
        blocks = process.parts.steps.scheduler.pool.match(addresses)[: answer.found]
        before = [caches.memory.peek(block) for block in blocks]
        await asyncio.sleep(self.random.uniform(0, 1))
        after = [caches.memory.peek(block) for block in blocks]
        release = pb.ReleaseRequest(lease_id=answer.lease.id, incarnation=answer.incarnation)
        if process.dead or not answer.HasField("lease"):
            return
        held = (await servicer.Release(release, context)).held  # type: ignore[arg-type]
        judge.saw("a lease was released" if held else "a lease expired")
        if held and before != after:
            judge.broken("leased blocks stay as they are", f"{len(blocks)} blocks")
