"""What `tokenway up` starts: each service's command and what its environment adds."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.engine.kv.cache_settings import CacheSettings, EmbeddedSettings
from services.engine.settings import ALIASES as ENGINE_ALIASES
from services.engine.settings import EngineSettings
from services.launcher.books import books_of
from services.launcher.child import Launch
from services.launcher.dev_key import KEYS
from services.launcher.environment import environment_for
from services.launcher.kv_folder import can_hold
from services.launcher.mesh import Mesh, mesh_of
from services.launcher.up_options import UpOptions
from services.shared.config import load, read_settings_file
from services.shared.config_tree import keys
from services.shared.tls.settings import MeshSettings

Program = Callable[[str], tuple[str, ...]]
"""The command of the service engine, router or codec."""

SERVER_PORT = "TOKENWAY_SERVER__PORT"
GRPC_PORT = "TOKENWAY_SERVER__GRPC_PORT"
METRICS_PORT = "TOKENWAY_METRICS__PORT"
THREADS = "TOKENWAY_EXECUTOR__THREADS"
MODEL_PATH = "TOKENWAY_EXECUTOR__MODEL_PATH"
ROLE = "TOKENWAY_EXECUTOR__ROLE"
CACHE_TYPE = "TOKENWAY_CACHE__TYPE"
CACHE_PATH = "TOKENWAY_CACHE__EMBEDDED__PATH"
SECURITY = "TOKENWAY_SECURITY__"
HTTPS_CERTIFICATE = "TOKENWAY_SERVER__TLS__CERTIFICATE"
SETTLE_S = "TOKENWAY_SERVICE__LIMITS__SETTLE_S"
DRAIN_S = "TOKENWAY_SERVICE__LIMITS__DRAIN_TIMEOUT_S"

METRICS_ABOVE = 300
"""Metrics are served so many ports above the service's own, where nothing else is said."""

LAST_WORDS_S = 1.0
LONGEST_DRAIN_S = 3600.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Decides what the options and the services' own files leave open.

    What is decided here goes into a service's environment, which goes before its file; so a fault
    in the file is told with the file's own name.
    """

    options: UpOptions
    program: Program
    environ: Mapping[str, str]

    def engine(self, index: int) -> Launch:
        """Args: index: the first `replicas` decode or do both, the rest prefill."""
        port, metrics_port = self._engine_ports()
        environ = {
            SERVER_PORT: str(port + index if port else 0),
            METRICS_PORT: str(metrics_port + index if metrics_port else 0),
            MODEL_PATH: str(self.options.model),
            THREADS: self.environ.get(THREADS) or str(self.threads()),
        }
        if self.options.simulate:
            environ["TOKENWAY_EXECUTOR__SIMULATE"] = "true"
        if self.options.prefill:
            environ[ROLE] = "decode" if index < self.options.replicas else "prefill"
        doors = {"grpc": SERVER_PORT, "metrics": METRICS_PORT}
        return self._launch("engine", f"engine {index}", environ, doors)

    def _engine_ports(self) -> tuple[int, int]:
        """Of the first engine and of its metrics; 0 takes free ones."""
        file, options = self._file("engine"), self.options
        port = _number(options.engine_port, _key(file, "server", "port"), 9100)
        return port, _number(options.metrics_port, self._metrics_port("engine", port))

    def _metrics_port(self, service: str, port: int) -> int:
        """Args: port: its own."""
        above = port + METRICS_ABOVE if port else 0
        return _number(_key(self._file(service), "metrics", "port"), above)

    def threads(self) -> int:
        """Threads of one engine: what was said, or its share of the cores that we may use."""
        if said := self.environ.get(THREADS):
            return int(said)
        share = max(1, len(os.sched_getaffinity(0)) // self.options.engines)
        return _number(_key(self._file("engine"), "executor", "threads"), share)

    def cache(self) -> CacheSettings:
        """As the engines have it. Raises BadConfig."""
        path = self._path("engine")
        return load(EngineSettings, path, self.engine(0).environ, ENGINE_ALIASES).cache

    def unusable_folder(self) -> Path | None:
        """The folder that engines share unless somebody says more, if nothing can be written there.

        An engine that is told to use it would not start.
        """
        filed = _key(self._file("engine"), "cache")
        if self.environ.get(CACHE_TYPE) or _key(filed, "type") is not None:
            return None
        named = self.environ.get(CACHE_PATH) or _key(filed, "embedded", "path")
        folder = Path(named) if isinstance(named, str) else EmbeddedSettings().path
        return None if can_hold(folder) else folder

    def router(self, engines: Sequence[str]) -> Launch:
        """Args: addresses of the engines."""
        port = _number(self.options.router_port, _key(self._file("router"), "server", "port"), 9000)
        environ = {
            SERVER_PORT: str(port),
            METRICS_PORT: str(self._metrics_port("router", port)),
            "TOKENWAY_REPLICAS": ",".join(engines),
        }
        doors = {"grpc": SERVER_PORT, "metrics": METRICS_PORT}
        return self._launch("router", "router", environ, doors)

    def codec(self, router: str) -> Launch:
        """Args: address of the router."""
        file = self._file("codec")
        http = _number(self.options.http_port, _key(file, "server", "port"), 8080)
        grpc = _number(self.options.grpc_port, _key(file, "server", "grpc_port"), 8081)
        environ = {
            SERVER_PORT: str(http),
            GRPC_PORT: str(grpc),
            METRICS_PORT: str(self._metrics_port("codec", http)),
            MODEL_PATH: str(self.options.model),
            "TOKENWAY_INFERENCE_ENGINE__ENDPOINT": router,
        }
        if self.asks_for_dev_key:
            environ[f"{SECURITY}KEYS_FILE"] = str(self.options.key_dir / KEYS)
        doors = {"http": SERVER_PORT, "grpc": GRPC_PORT, "metrics": METRICS_PORT}
        return self._launch("codec", "codec", environ, doors)

    @property
    def asks_for_dev_key(self) -> bool:
        """Callers show the key that is made here, unless somebody says who may ask."""
        names = {name for name, text in self.environ.items() if text and name.startswith(SECURITY)}
        said = {name.removeprefix(SECURITY).lower() for name in names}
        return {*said, *self._security("codec")} <= keys(MeshSettings)

    @property
    def mesh(self) -> Mesh:
        """How the services meet. Raises BadConfig."""
        services = ("engine", "router", "codec")
        filed = {service: self._security(service) for service in services}
        return mesh_of(self.environ, filed, self.options.key_dir)

    @property
    def engine_names(self) -> list[str]:
        """Of their folders."""
        return [_folder(f"engine {index}") for index in range(self.options.engines)]

    def readiness_path(self) -> str:
        """Where the codec's HTTP door tells that it can serve."""
        return str(_key(self._file("codec"), "health", "readiness_path") or "/readyz")

    @property
    def scheme(self) -> str:
        """Of the codec's HTTP door."""
        filed = _key(self._file("codec"), "server", "tls", "certificate")
        return "https" if self.environ.get(HTTPS_CERTIFICATE) or filed is not None else "http"

    def _launch(
        self, service: str, name: str, environ: dict[str, str], ports: dict[str, str]
    ) -> Launch:
        path = self._path(service)
        config = () if path is None else ("--config", str(path))
        return Launch(
            service=service,
            name=name,
            command=(*self.program(service), *config),
            environ={
                **self._leaving(service),
                **(self._sharing() if service == "engine" else {}),
                **self.mesh.environ(_folder(name)),
                **books_of(service, self._file(service), self.options.key_dir),
                **self._said(service),
                **environ,
            },
            ports=ports,
        )

    def _said(self, service: str) -> dict[str, str]:
        """What the environment says to a service.

        In the clear a router cannot tell the codec from a caller, so keys are for the codec alone.
        """
        said = environment_for(service, self.environ)
        if service != "router" or self.mesh.mtls:
            return said
        return {
            name: text
            for name, text in said.items()
            if not name.startswith(SECURITY)
            or name.removeprefix(SECURITY).lower() in keys(MeshSettings)
        }

    def _leaving(self, service: str) -> dict[str, str]:
        """How a service leaves, where its file does not say.

        The launcher stops senders first, so nobody comes late. What a service breaks off in the
        end has a second to be told, before the launcher's patience ends.
        """
        drain_s = min(max(0.0, self.options.drain_s - LAST_WORDS_S), LONGEST_DRAIN_S)
        limits = _key(self._file(service), "service", "limits")
        decided = {"settle_s": (SETTLE_S, "0"), "drain_timeout_s": (DRAIN_S, f"{drain_s:g}")}
        return dict(pair for key, pair in decided.items() if _key(limits, key) is None)

    def _sharing(self) -> dict[str, str]:
        """The engines of a machine share what they have computed, where nothing else is said."""
        if _key(self._file("engine"), "cache", "type") is not None:
            return {}
        return {CACHE_TYPE: "none" if self.unusable_folder() else "embedded"}

    def _security(self, service: str) -> dict[str, Any]:
        said = _key(self._file(service), "security")
        return said if isinstance(said, dict) else {}

    def _path(self, service: str) -> Path | None:
        folder = self.options.config_dir
        path = None if folder is None else folder / f"{service}.yaml"
        return path if path is not None and path.is_file() else None

    def _file(self, service: str) -> dict[str, Any]:
        path = self._path(service)
        return {} if path is None else read_settings_file(path)


def module_of(service: str) -> tuple[str, ...]:
    return (sys.executable, "-m", f"services.{service}")


def _folder(name: str) -> str:
    """Of the service that is called so towards people."""
    return name.replace(" ", "-")


def _key(tree: Any, *names: str) -> Any:
    """What a file says under nested names, or None."""
    for name in names:
        tree = tree.get(name) if isinstance(tree, dict) else None
    return tree


def _number(*choices: Any) -> int:
    """The first that is a number; anything else is left to the service, which refuses it."""
    return next(choice for choice in choices if type(choice) is int)
