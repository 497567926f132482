"""Real `redis-server` processes for tests: one, with a password or TLS, several, a cluster."""

from __future__ import annotations

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import redis

from tests.certificates import Identity

PATIENCE_S = 30
SLOTS = 16384
NODE_TIMEOUT_MS = 1000
"""After which the nodes of a cluster take a silent one for dead."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """How a server is started.

    Args:
        password: of the user `default`; None asks for none.
        tls: it speaks TLS alone, and asks clients for a certificate of the same authority.
        cluster: it is a node of a cluster.
        lines: further settings, as the command line has them: `("--maxmemory", "4mb")`.
    """

    password: str | None = None
    tls: Identity | None = None
    cluster: bool = False
    lines: Sequence[str] = ()


class RedisServer:
    """One server over all its lives; each life starts empty, at the same address.

    Attributes:
        address: `127.0.0.1:port`, once it has been started.
    """

    def __init__(self, folder: Path, options: ServerOptions) -> None:
        self.address = ""
        self._folder = folder
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def start(self) -> None:
        """Returns when it answers."""
        tries = 0
        while not self._start_once():
            tries += 1
            assert tries < 20, f"redis-server does not start:\n{self.log()}"

    def ask(self, *command: str | bytes | int) -> Any:
        """Runs a command as its operator; the answer as RESP2 has it, in bytes."""
        connection = self._connection()
        try:
            connection.send_command(*command)
            return connection.read_response()
        finally:
            connection.disconnect()

    def log(self) -> str:
        path = self._folder / "redis.log"
        return path.read_text() if path.exists() else ""

    def kill(self) -> None:
        """At once; all it held is lost."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def suspend(self) -> None:
        """It holds its connections, takes new ones and does nothing."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)

    def _start_once(self) -> bool:
        """Whether it listens; somebody else may have taken its port."""
        port = self.port if self.address else free_port()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._process = subprocess.Popen(  # noqa: S603 a server of ours
            ["redis-server", *_command_line(port, self._folder, self._options)],  # noqa: S607
            stdout=subprocess.DEVNULL,
        )
        self.address = f"127.0.0.1:{port}"
        while self._process.poll() is None:
            try:
                self.ask("PING")
            except redis.ConnectionError:
                time.sleep(0.005)
            else:
                return True
        return False

    def _connection(self) -> redis.Connection:
        options = self._options
        common: dict[str, Any] = {
            "host": "127.0.0.1",
            "port": self.port,
            "password": options.password,
            "socket_timeout": PATIENCE_S,
            "driver_info": None,
            "protocol": 2,
        }
        if options.tls is None:
            return redis.Connection(**common)
        return redis.SSLConnection(
            **common,
            ssl_ca_certs=str(options.tls.ca_file),
            ssl_certfile=str(options.tls.cert_file),
            ssl_keyfile=str(options.tls.key_file),
        )


def free_port() -> int:
    """A port that was free a moment ago: redis-server cannot be asked for any."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def redis_server(folder: Path, options: ServerOptions | None = None) -> Iterator[RedisServer]:
    """A server that answers, and ends with the block. `folder` is its own."""
    server = RedisServer(folder, options or ServerOptions())
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def redis_servers(
    folder: Path, count: int, options: ServerOptions | None = None
) -> Iterator[list[RedisServer]]:
    """Servers that know nothing of each other."""
    with ExitStack() as running:
        yield [
            running.enter_context(redis_server(folder / f"redis{index}", options))
            for index in range(count)
        ]


@contextmanager
def redis_cluster(folder: Path, count: int = 3) -> Iterator[list[RedisServer]]:
    """A cluster of masters, of which each has its share of the slots.

    It serves what it has when nodes are dead.
    """
    with redis_servers(folder, count, ServerOptions(cluster=True)) as nodes:
        for index, node in enumerate(nodes):
            first, beyond = index * SLOTS // count, (index + 1) * SLOTS // count
            node.ask("CLUSTER", "ADDSLOTSRANGE", first, beyond - 1)
            bus = int(node.ask("CONFIG", "GET", "cluster-port")[1])
            nodes[0].ask("CLUSTER", "MEET", "127.0.0.1", node.port, bus)
        wait_for(lambda: all(_knows(node, count) for node in nodes))
        yield nodes


def _knows(node: RedisServer, count: int) -> bool:
    told: bytes = node.ask("CLUSTER", "INFO")
    whole = f"cluster_slots_ok:{SLOTS}\r\n".encode()
    return b"cluster_state:ok" in told and whole in told and len(_masters(node)) == count


def _masters(node: RedisServer) -> set[int]:
    """Ports of the nodes that a node of a cluster sends clients to."""
    return {int(entry[2][1]) for entry in node.ask("CLUSTER", "SLOTS")}


def wait_for(condition: Callable[[], object]) -> None:
    """Returns when the condition holds; `tests.waiting.until` for tests without an event loop."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.005)


def _command_line(port: int, folder: Path, options: ServerOptions) -> list[str]:
    line = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"]
    line += ["--dir", str(folder), "--logfile", "redis.log", "--enable-debug-command", "yes"]
    if options.tls is None:
        line += ["--port", str(port)]
    else:
        line += ["--port", "0", "--tls-port", str(port)]
        line += ["--tls-ca-cert-file", str(options.tls.ca_file)]
        line += ["--tls-cert-file", str(options.tls.cert_file)]
        line += ["--tls-key-file", str(options.tls.key_file)]
    if options.password is not None:
        line += ["--requirepass", options.password]
    if options.cluster:
        line += ["--cluster-enabled", "yes", "--cluster-port", str(free_port())]
        line += ["--cluster-node-timeout", str(NODE_TIMEOUT_MS)]
        line += ["--cluster-require-full-coverage", "no"]
    return [*line, *options.lines]
