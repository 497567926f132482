"""The connection to what generates: a session, and the proof that its tokens are ours."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic

import grpc
from tokenway.engine.v1 import engine_pb2 as pb
from tokenway.engine.v1 import engine_pb2_grpc as rpc

from services.shared.errors import Unavailable
from services.shared.stream.client_session import ClientSession
from services.shared.stream.load import Load, ReplicaState
from services.shared.stream.source import TokenSource
from services.shared.tasks import Tasks
from services.shared.tls.way import Way

CHECK_INTERVAL_S = 1.0
LOAD_LASTS_S = 3.0
"""The other side tells its load every second; what it told longer ago says nothing of now."""

FIRST_CHECKS_S = 0.1
DESCRIBE_TIMEOUT_S = 5.0

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What decides whether token IDs mean the same on both sides."""

    tokenizer_fingerprint: str
    vocabulary_size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Engine:
    """What is known of the other side once it was found to fit.

    Args:
        source: takes generations.
        model: the name that it calls its model by.
        context_length: tokens that prompt and output may have together.
    """

    source: TokenSource
    model: str
    context_length: int


class EngineLink:
    """Asks the other side again and again who it is; gives it out only while it fits."""

    def __init__(self, way: Way, ours: Identity, endpoint: str) -> None:
        self.session = ClientSession(way, endpoint, self._told)
        self._ours = ours
        self._endpoint = endpoint
        self._described: pb.DescribeResponse | None = None
        self._fault = "the engine has not been reached yet"
        self._told_at = 0.0

    @property
    def fault(self) -> str | None:
        """Why nothing can be served, or None."""
        if self._described is None:
            return self._fault
        if self.session.load().state is not ReplicaState.READY:
            return "the engine is not ready"
        return None

    def context_length(self) -> int | None:
        """As the other side tells it; None until it is known."""
        return self._described.context_length if self._described is not None else None

    def load(self) -> Load | None:
        """As the other side pushed it last; None when that is long ago."""
        return self.session.load() if monotonic() - self._told_at < LOAD_LASTS_S else None

    def absence(self) -> Unavailable | None:
        """Why there is no engine to send anything to; None while there is."""
        if self._described is None or self.session.load().state is ReplicaState.STARTING:
            return Unavailable(f"the model cannot be served now: {self.fault}")
        return None

    def engine(self) -> Engine:
        """Raises Unavailable while the other side is not there or does not fit."""
        absence = self.absence()
        if absence is not None or self._described is None:
            raise absence or Unavailable("the model cannot be served now")
        return Engine(
            source=self.session,
            model=self._described.model,
            context_length=self._described.context_length,
        )

    def _told(self, load: Load | None) -> None:
        self._told_at = 0.0 if load is None else monotonic()

    async def check(self) -> None:
        """Compares for ever; what does not fit is told once in the log."""
        while True:
            fault = await self._compared()
            if fault is not None:
                if fault != self._fault:
                    _log.error("engine at %s cannot serve: %s", self._endpoint, fault)
                self._fault, self._described = fault, None
            await asyncio.sleep(FIRST_CHECKS_S if self._described is None else CHECK_INTERVAL_S)

    async def _compared(self) -> str | None:
        """What is wrong; when nothing is, the other side's description is kept."""
        try:
            stub = rpc.EngineServiceStub(self.session.channel)
            described = await stub.Describe(
                pb.DescribeRequest(), timeout=DESCRIBE_TIMEOUT_S, wait_for_ready=True
            )
        except grpc.aio.AioRpcError as error:
            _log.debug("describe at %s: %s", self._endpoint, error.details())
            return "the engine does not answer"
        ours = self._ours
        if described.tokenizer_fingerprint != ours.tokenizer_fingerprint:
            return "the engine's tokenizer or chat template is not the codec's"
        if described.vocabulary_size != ours.vocabulary_size:
            return (
                f"the engine's vocabulary has {described.vocabulary_size} tokens, "
                f"the codec's {ours.vocabulary_size}"
            )
        self._described = described
        return None


@asynccontextmanager
async def linked(way: Way, endpoint: str, ours: Identity) -> AsyncIterator[EngineLink]:
    """Keeps the link up inside the block."""

    def crashed(name: str, _: Exception) -> None:
        _log.error("%s ended; the codec cannot serve any more", name)

    link = EngineLink(way, ours, endpoint)
    try:
        async with Tasks(crashed) as tasks:
            tasks.start("session", link.session.run())
            tasks.start("check", link.check())
            yield link
    finally:
        await link.session.close()
