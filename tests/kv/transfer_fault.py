"""What happens to an engine while KV moves, and when."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    asynccontextmanager,
    contextmanager,
)

from tests.kv.transfer import Transfers


async def before(_: Transfers) -> None:
    """The engine for outputs has been asked, and no more."""


async def amid(transfers: Transfers) -> None:
    """Some blocks have come, others have not been computed yet."""
    await transfers.amid()


async def after(transfers: Transfers) -> None:
    """An answer has begun, so its blocks have come."""
    await transfers.listeners[0].until(3)


@contextmanager
def killed(transfers: Transfers, at: int) -> Iterator[None]:
    transfers.engine(at).kill()
    yield


@contextmanager
def stopped(transfers: Transfers, at: int) -> Iterator[None]:
    transfers.engine(at).suspend()
    yield
    transfers.engine(at).resume()


@contextmanager
def silenced(transfers: Transfers, at: int) -> Iterator[None]:
    """Nothing comes from it, and nothing to it."""
    transfers.cluster.links[at].hold()
    yield
    transfers.cluster.links[at].restore()


Moment = Callable[[Transfers], Awaitable[None]]
Fault = Callable[[Transfers, int], AbstractContextManager[None]]


def fault_of(
    transfers: Transfers, at: int, moment: Moment, fault: Fault
) -> Callable[[], AbstractAsyncContextManager[None]]:
    @asynccontextmanager
    async def happens() -> AsyncIterator[None]:
        await moment(transfers)
        with fault(transfers, at):
            yield

    return happens
