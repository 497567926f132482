"""Engine, router and codec as real processes on loopback, for tests of all of them together."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import yaml
from tokenway.engine.v1 import engine_pb2

from services.shared.announce import announced
from services.shared.model_folder import ModelFolder
from services.shared.tls.identity import STREAM_NAME, Role
from tests.mesh_bed import Certified

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120

Settings = Mapping[str, Any]

DEFAULTS: Settings = {
    "server": {"port": 0},
    "metrics": {"port": 0},
    "service": {"limits": {"settle_s": 0}},
    "security": {"mtls": False},
}
"""Free ports; nobody who has to hear that a service leaves before it does; no certificates."""


@dataclass(frozen=True, kw_only=True)
class Service:
    """One process; `doors` are where it listens, `certified` who may call it, if not everybody."""

    process: subprocess.Popen[str]
    doors: Mapping[str, str]
    log: Path
    certified: Certified | None = None

    @property
    def grpc(self) -> str:
        return self.doors["grpc"]

    def lines(self, **having: Any) -> list[dict[str, Any]]:
        """What it logged, one object for each line, where it has these values."""
        # A line that is being written has no end yet.
        *whole, _ = self.log.read_text().split("\n")
        told = [json.loads(line) for line in whole]
        return [line for line in told if having.items() <= line.items()]

    def end(self) -> int:
        """Asks it to end and gives its exit status."""
        self.process.terminate()
        return self.process.wait(PATIENCE_S)

    def describe(self) -> engine_pb2.DescribeResponse:
        """What an engine or a router says of itself."""
        with self._channel() as channel:
            describe = channel.unary_unary(
                "/tokenway.engine.v1.EngineService/Describe",
                request_serializer=engine_pb2.DescribeRequest.SerializeToString,
                response_deserializer=engine_pb2.DescribeResponse.FromString,
            )
            described: engine_pb2.DescribeResponse = describe(
                engine_pb2.DescribeRequest(), timeout=PATIENCE_S
            )
        return described

    def _channel(self) -> Any:
        if self.certified is None:
            return grpc.insecure_channel(self.grpc)
        ours = self.certified.files(Role.ADMIN)
        credentials = grpc.ssl_channel_credentials(ours.ca, ours.key, ours.chain)
        named = [("grpc.ssl_target_name_override", STREAM_NAME)]
        return grpc.secure_channel(self.grpc, credentials, named)


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Services that are ready; requests go to `url`."""

    engines: tuple[Service, ...]
    router: Service
    codec: Service
    model: str

    @property
    def url(self) -> str:
        return f"http://{self.codec.doors['http']}"

    @property
    def services(self) -> tuple[Service, ...]:
        return (*self.engines, self.router, self.codec)

    def chat(self, content: str = "hi", **changes: Any) -> dict[str, Any]:
        """A body of Chat Completions."""
        messages = [{"role": "user", "content": content}]
        return {"model": self.model, "messages": messages, **changes}


@dataclass(frozen=True, kw_only=True)
class Launcher:
    """Starts services with settings files and logs in `folder`.

    Args: certified: gives each its certificate; None starts them in the clear.
    """

    folder: Path
    environ: Mapping[str, str]
    certified: Certified | None = None

    @contextmanager
    def running(
        self, name: str, settings: Settings, program: Sequence[str] = ()
    ) -> Iterator[Service]:
        """A service that listens; `program` stands for `-m services.<name without its number>`."""
        config = self.folder / f"{name}.yaml"
        config.write_text(yaml.safe_dump(merged(self._defaults(name), settings)))
        log = self.folder / f"{name}.log"
        program = program or ("-m", f"services.{name.rstrip('0123456789')}")
        with (
            log.open("a") as stderr,
            subprocess.Popen(  # noqa: S603 our own program
                [sys.executable, *program, "--config", str(config)],
                cwd=ROOT,
                env={**_without_settings(os.environ), **self.environ},
                stdout=subprocess.PIPE,
                stderr=stderr,
                text=True,
            ) as process,
        ):
            try:
                assert process.stdout is not None
                doors = announced(process.stdout.readline())
                assert doors is not None, log.read_text()
                yield Service(process=process, doors=doors, log=log, certified=self.certified)
                process.terminate()
                process.wait(PATIENCE_S)
            finally:
                process.kill()

    def _defaults(self, name: str) -> Settings:
        if self.certified is None:
            return DEFAULTS
        folder = self.certified.folder(Role(name.rstrip("0123456789")), name)
        return {**DEFAULTS, "security": {"mtls": True, "certificates": str(folder)}}


@contextmanager
def stack_of(
    launcher: Launcher,
    engines: Sequence[Settings],
    model: ModelFolder,
    program: Sequence[str] = (),
    **router: Any,
) -> Iterator[Stack]:
    """A stack that is ready and ends with the block.

    Args:
        launcher: starts it.
        engines: the settings of each engine.
        model: the model of the codec.
        program: stands for the engines' `-m services.engine`.
        router: settings of the router beside its replicas.
    """
    with ExitStack() as running:
        started = tuple(
            running.enter_context(launcher.running(f"engine{index}", settings, program))
            for index, settings in enumerate(engines)
        )
        routing = running.enter_context(
            launcher.running("router", {"replicas": [engine.grpc for engine in started], **router})
        )
        codec: Settings = {
            "server": {"port": 0, "grpc_port": 0},
            "inference_engine": {"endpoint": routing.grpc},
            "executor": {"model_path": str(model.path)},
        }
        door = running.enter_context(launcher.running("codec", codec))
        stack = Stack(engines=started, router=routing, codec=door, model=model.name)
        wait_until_ready(stack)
        yield stack


def wait_until_ready(stack: Stack) -> None:
    """Returns when the codec can serve and the router counts every engine's blocks."""
    blocks = sum(engine.describe().load.total_blocks for engine in stack.engines)
    deadline = time.monotonic() + PATIENCE_S
    with httpx.Client(base_url=stack.url) as client:
        while not (
            client.get("/readyz").status_code == 200 and _blocks_known(stack.router) == blocks
        ):
            assert time.monotonic() < deadline, "the stack does not get ready"
            time.sleep(0.05)


def _blocks_known(router: Service) -> int:
    """Blocks of the replicas that the router knows; none while it knows no replica."""
    try:
        return router.describe().load.total_blocks
    except grpc.RpcError:
        return 0


def simulated(model: ModelFolder, **executor: Any) -> Settings:
    """Settings of an engine that computes nothing."""
    own = {"model_path": str(model.path), "simulate": True}
    return {"executor": {**own, "simulation": {"step_us": 500, "token_us": 5}, **executor}}


def merged(defaults: Settings, settings: Settings) -> dict[str, Any]:
    """The settings, with the defaults where they say nothing, section by section."""
    both = {**defaults, **settings}
    for key in defaults.keys() & settings.keys():
        default, value = defaults[key], settings[key]
        if isinstance(value, Mapping) and isinstance(default, Mapping):
            both[key] = merged(default, value)
    return both


def _without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of a service that is set by its file alone."""
    kept = {name: text for name, text in environ.items() if not name.startswith("TOKENWAY_")}
    return kept | {"PYTHONPATH": f"{ROOT}:{ROOT / 'stubs'}"}
