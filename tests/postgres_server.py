"""A PostgreSQL server of our own, where its programs are on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.redis_server import free_port

USER, PASSWORD, DATABASE = "tokenway", "s3cret", "postgres"


def programs() -> Path | None:
    """The folder of initdb and pg_ctl; Debian has them beside the path."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).parent
    folders = Path("/usr/lib/postgresql").glob("*/bin")
    return max((folder for folder in folders if (folder / "initdb").exists()), default=None)


@dataclass(frozen=True, kw_only=True)
class PostgresServer:
    """Asks for a password.

    Attributes:
        url: without the password.
    """

    folder: Path
    bin: Path
    port: int

    @property
    def url(self) -> str:
        return f"postgresql+psycopg://{USER}@127.0.0.1:{self.port}/{DATABASE}"

    def start(self) -> None:
        options = f"-h 127.0.0.1 -p {self.port} -k {self.folder} -F"
        self._control("start", "-l", str(self.folder / "log"), "-o", options)

    def stop(self) -> None:
        self._control("stop", "-m", "immediate")

    def make(self) -> None:
        password = self.folder / "password"
        password.write_text(PASSWORD)
        if os.getuid() == 0:  # as whom the server does not run
            for path in (self.folder, password):
                shutil.chown(path, "postgres")
        options = ["-A", "scram-sha-256", f"--pwfile={password}", "-N", "--no-instructions"]
        _run([str(self.bin / "initdb"), "-D", str(self._data), "-U", USER, *options])

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    def _control(self, action: str, *options: str) -> None:
        _run([str(self.bin / "pg_ctl"), "-D", str(self._data), "-w", action, *options])


@contextmanager
def postgres_server(bin_folder: Path) -> Iterator[PostgresServer]:
    """A server that answers, and ends with the block."""
    with tempfile.TemporaryDirectory(prefix="tokenway-pg-") as folder:
        server = PostgresServer(folder=Path(folder), bin=bin_folder, port=free_port())
        server.make()
        server.start()
        try:
            yield server
        finally:
            server.stop()


def _run(command: Sequence[str]) -> None:
    user = "postgres" if os.getuid() == 0 else None
    subprocess.run(  # noqa: S603 programs of the system
        command,
        user=user,
        check=True,
        cwd="/",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
