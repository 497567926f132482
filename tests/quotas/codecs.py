"""Codecs that share a store of quotas, before one simulated engine: real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx

from services.launcher.keys_command import create_key
from services.shared.model_folder import ModelFolder
from tests.integration.stack import Launcher, Service, Settings, simulated
from tests.redis_server import RedisServer, redis_server, wait_for

CHAT = "/v1/chat/completions"
PLAIN = {"mtls": False}
LEASE_S = 8
TIMEOUT_MS = 1300
"""Machines that run tests are slow; what a store that hangs costs is tried elsewhere."""

STEP_US = 1000


@dataclass(frozen=True, kw_only=True)
class Codecs:
    """What a test speaks to.

    Args:
        doors: the processes.
        store: what they share.
        keys: of each tenant.
        model: its name.
    """

    doors: tuple[Service, ...]
    store: RedisServer
    keys: Mapping[str, str]
    model: str

    def client(self, at: int, tenant: str) -> httpx.AsyncClient:
        """Speaks to one codec for one tenant."""
        url = f"http://{self.doors[at].doors['http']}"
        limits = httpx.Limits(max_connections=None)
        headers = {"x-api-key": self.keys[tenant]}
        return httpx.AsyncClient(base_url=url, headers=headers, timeout=120, limits=limits)

    def body(self, max_tokens: int, **changes: Any) -> dict[str, Any]:
        messages = [{"role": "user", "content": "hi"}]
        return {"model": self.model, "max_tokens": max_tokens, "messages": messages, **changes}

    def known(self, tenant: str) -> Mapping[str, float]:
        """What the store knows of a tenant."""
        told = self.store.ask("HGETALL", f"tokenway:quotas:{{{tenant}}}:state")
        pairs = zip(told[::2], told[1::2], strict=True)
        return {name.decode(): float(value) for name, value in pairs}

    def is_settled(self, tenant: str) -> bool:
        known = self.known(tenant)
        whole = known["reserved"] == known["settled"] + known["refunded"]
        return whole and not known["running"]


@contextmanager
def codecs_of(
    launcher: Launcher, model: ModelFolder, tenants: Sequence[Mapping[str, Any]], count: int = 4
) -> Iterator[Codecs]:
    """Codecs that can serve; they end with the block. `tenants`: entries of their file."""
    folder = launcher.folder
    keys_file, tenants_file = folder / "keys.json", folder / "tenants.yaml"
    names = [str(entry["tenant"]) for entry in tenants]
    keys = {name: create_key(keys_file, name, "").text for name in names}
    tenants_file.write_text(json.dumps({"tenants": [dict(entry) for entry in tenants]}))
    with ExitStack() as running:
        store = running.enter_context(redis_server(folder / "redis"))
        simulation = {"step_us": STEP_US, "token_us": 0}
        engine = running.enter_context(
            launcher.running(
                "engine", {**simulated(model, simulation=simulation), "security": PLAIN}
            )
        )
        codec: Settings = {
            "server": {"port": 0, "grpc_port": 0},
            "inference_engine": {"endpoint": engine.grpc},
            "executor": {"model_path": str(model.path)},
            "service": {"limits": {"drain_timeout_s": 1}},
            "security": {
                **PLAIN,
                "keys_file": str(keys_file),
                "tenants_file": str(tenants_file),
                "quotas": {
                    "redis_url": f"redis://{store.address}",
                    "lease_s": LEASE_S,
                    "timeout_ms": TIMEOUT_MS,
                    "processes": count,
                },
            },
        }

        def start(at: int) -> Service:
            return running.enter_context(launcher.running(f"codec{at}", codec))

        with ThreadPoolExecutor() as together:
            doors = tuple(together.map(start, range(count)))
        _wait_until_ready(doors)
        yield Codecs(doors=doors, store=store, keys=keys, model=model.name)


def _wait_until_ready(doors: Sequence[Service]) -> None:
    with httpx.Client() as client:
        for door in doors:
            url = f"http://{door.doors['http']}/readyz"
            wait_for(partial(_is_ready, client, url))


def _is_ready(client: httpx.Client, url: str) -> bool:
    return client.get(url).status_code == 200
