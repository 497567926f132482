"""A node that says the same to whatever it hears, at the pace that a test wants."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class Answering:
    """Attributes: address: where it listens; accepted: connections so far; sent: bytes so far."""

    def __init__(self, answer: bytes, pace_s: float | None) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = "{}:{}".format(*self._listener.getsockname())
        self.accepted = 0
        self.sent = 0
        self._answer = answer
        self._pace_s = pace_s
        self._ended = threading.Event()

    def run(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.accepted += 1
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def end(self) -> None:
        self._ended.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(OSError):
            while connection.recv(1 << 20):
                if self._pace_s is None:
                    connection.sendall(self._answer)
                else:
                    self._drip(connection, self._pace_s)

    def _drip(self, connection: socket.socket, pace_s: float) -> None:
        for position in range(len(self._answer)):
            connection.sendall(self._answer[position : position + 1])
            self.sent += 1
            if self._ended.wait(pace_s):
                return


@contextmanager
def answering(answer: bytes, pace_s: float | None = None) -> Iterator[Answering]:
    """A node that ends with the block. `pace_s` is the time between two bytes."""
    node = Answering(answer, pace_s)
    thread = threading.Thread(target=node.run)
    thread.start()
    try:
        yield node
    finally:
        node.end()
        thread.join()
