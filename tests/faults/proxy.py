"""A TCP proxy that can cut, hold, refuse, delay and spoil, on a thread of its own."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

CHUNK_BYTES = 1 << 16

LAST_TURNS = 10
"""Of the event loop: what was accepted last joins a few turns later."""


class Proxy:
    """Passes bytes between whoever connects and `target`. Its methods may be called anywhere.

    Attributes:
        address: where it listens.
    """

    def __init__(self, target: str) -> None:
        self.address = ""
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self._joins: set[asyncio.Task[None]] = set()
        self._passing = asyncio.Event()
        self._passing.set()
        self._refusing = False
        self._delay_s = 0.0
        self._flip_every: int | None = None
        self._unflipped = 0
        self._left: int | None = None
        self._stop = asyncio.Event()
        self._loop = asyncio.new_event_loop()

    def cut(self) -> None:
        """Resets all connections; new ones are made as before."""
        self._tell(self._abort)

    def refuse(self) -> None:
        """Resets all connections, and each new one at once, until `restore`."""
        self._refusing = True
        self._tell(self._abort)

    def hold(self) -> None:
        """Connections stay, and nothing comes through, until `restore` or a cut."""
        self._tell(self._passing.clear)

    def delay(self, seconds: float) -> None:
        """All that passes comes so much later, until `restore`."""
        self._delay_s = seconds

    def flip(self, every: int) -> None:
        """One bit in so many bytes that the target says comes wrong, until `restore`."""
        self._unflipped = 0
        self._flip_every = every

    def truncate(self, after: int) -> None:
        """When the target has said so many bytes more, all connections end, until `restore`.

        New ones end with the first byte that it says.
        """
        self._left = after

    def restore(self) -> None:
        """What was held comes late, and all is as before."""
        self._refusing = False
        self._delay_s = 0.0
        self._flip_every = self._left = None
        self._tell(self._passing.set)

    def run(self, listening: Callable[[], None]) -> None:
        """Serves until `stop`; for a thread."""
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._serve(listening))

    def stop(self) -> None:
        self._tell(self._stop.set)

    def _tell(self, act: Callable[[], object]) -> None:
        self._loop.call_soon_threadsafe(act)

    def _abort(self) -> None:
        for writer in list(self._writers):
            _reset(writer)

    async def _serve(self, listening: Callable[[], None]) -> None:
        server = await asyncio.start_server(self._join, "127.0.0.1", 0)
        self.address = "{}:{}".format(*server.sockets[0].getsockname())
        listening()
        await self._stop.wait()
        # A server that closes between accepting a connection and taking it up would lose it, open.
        self._loop.remove_reader(server.sockets[0].fileno())
        for _ in range(LAST_TURNS):
            await asyncio.sleep(0)
        server.close()
        self._passing.set()
        self._abort()
        if self._joins:
            await asyncio.wait(self._joins)

    async def _join(self, near_in: asyncio.StreamReader, near_out: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._joins.add(task)
        task.add_done_callback(self._joins.discard)
        self._writers.add(near_out)
        try:
            if self._refusing:
                return
            host, _, port = self._target.rpartition(":")
            far_in, far_out = await asyncio.open_connection(host, int(port))
            self._writers.add(far_out)
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._pump(near_in, far_out, bytes))
                    group.create_task(self._pump(far_in, near_out, self._spoilt))
            finally:
                self._writers.discard(far_out)
                _reset(far_out)
        except OSError:
            pass  # nobody is there: whoever connected learns it by the reset below
        finally:
            self._writers.discard(near_out)
            _reset(near_out)

    async def _pump(
        self,
        source: asyncio.StreamReader,
        to: asyncio.StreamWriter,
        spoilt: Callable[[bytes], bytes],
    ) -> None:
        """Ends both directions when one does: nothing that passes here closes by halves."""
        with suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                await asyncio.sleep(self._delay_s)
                await self._passing.wait()
                said = spoilt(data)
                to.write(said)
                await to.drain()
                if len(said) < len(data):
                    self._abort()
        _reset(to)

    def _spoilt(self, said: bytes) -> bytes:
        """What comes of what the target said."""
        if self._flip_every is not None:
            flipped = bytearray(said)
            first = self._flip_every - 1 - self._unflipped
            for at in range(first, len(said), self._flip_every):
                flipped[at] ^= 1 << at % 8
            self._unflipped = (self._unflipped + len(said)) % self._flip_every
            said = bytes(flipped)
        if self._left is not None:
            said = said[: self._left]
            self._left -= len(said)
        return said


def _reset(writer: asyncio.StreamWriter) -> None:
    """The peer sees a reset, as of a machine that has forgotten the connection."""
    taken: socket.socket = writer.get_extra_info("socket")
    with suppress(OSError):  # it is closed already
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@contextmanager
def proxy_to(target: str) -> Iterator[Proxy]:
    """A proxy that listens, and ends with the block."""
    proxy = Proxy(target)
    listening = threading.Event()
    thread = threading.Thread(target=proxy.run, args=(listening.set,), name=f"proxy to {target}")
    thread.start()
    try:
        listening.wait()
        yield proxy
    finally:
        proxy.stop()
        thread.join()
