"""compose.yaml and the Dockerfile fit each other and the services' settings."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.codec.settings import ALIASES as CODEC_ALIASES
from services.codec.settings import CodecSettings
from services.engine.settings import ALIASES as ENGINE_ALIASES
from services.engine.settings import EngineSettings
from services.launcher.__main__ import COMMANDS
from services.router.settings import RouterSettings
from services.shared.config import load

ROOT = Path(__file__).parents[2]
LAST_WORDS_S = 1
"""What broken off answers have to say so."""

SERVICES: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"]
SETTINGS: dict[str, tuple[type[Any], dict[str, str]]] = {
    "engine": (EngineSettings, ENGINE_ALIASES),
    "router": (RouterSettings, {}),
    "codec": (CodecSettings, CODEC_ALIASES),
}


def stages() -> dict[str, str]:
    """The Dockerfile's stages by name, each with its text."""
    text = (ROOT / "deploy/Dockerfile").read_text()
    parts = re.split(r"^FROM \S+ AS (\w+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_built_from_a_stage_of_its_own(name: str) -> None:
    assert SERVICES[name]["build"]["target"] == name
    assert name in stages()
    assert re.fullmatch(r"tokenway-\w+:\d+\.\d+\.\d+", SERVICES[name]["image"])


@pytest.mark.parametrize("name", SETTINGS)
def test_the_environment_of_each_service_loads(name: str) -> None:
    cls, aliases = SETTINGS[name]
    settings = load(cls, None, SERVICES[name]["environment"], aliases)
    assert settings.server.host == "0.0.0.0"  # noqa: S104 the container's own network


@pytest.mark.parametrize("name", SETTINGS)
def test_each_service_is_probed_where_it_listens(name: str) -> None:
    cls, aliases = SETTINGS[name]
    settings = load(cls, None, SERVICES[name]["environment"], aliases)
    program, command, address = SERVICES[name]["healthcheck"]["test"][1:]
    assert (program, command) == ("tokenway", "probe")
    assert command in COMMANDS
    assert re.search(r":(\d+)", address.removeprefix("http:"))
    assert f":{settings.server.port}" in address


@pytest.mark.parametrize("name", SETTINGS)
def test_no_service_is_killed_before_it_has_settled_and_drained(name: str) -> None:
    cls, aliases = SETTINGS[name]
    limits = load(cls, None, SERVICES[name]["environment"], aliases).service.limits
    grace = re.fullmatch(r"(\d+)s", SERVICES[name]["stop_grace_period"])
    assert grace is not None
    assert int(grace[1]) > limits.settle_s + limits.drain_timeout_s + LAST_WORDS_S


def test_the_router_finds_every_engine_of_the_service() -> None:
    settings = load(RouterSettings, None, SERVICES["router"]["environment"], {})
    engine = load(EngineSettings, None, SERVICES["engine"]["environment"], ENGINE_ALIASES)
    (name,) = settings.discovery.names
    assert name.address == f"engine:{engine.server.port}"


def test_the_order_is_model_engine_router_codec() -> None:
    healthy, done = "service_healthy", "service_completed_successfully"
    waits = {
        name: {other: wait["condition"] for other, wait in service.get("depends_on", {}).items()}
        for name, service in SERVICES.items()
    }
    assert waits == {
        "model": {},
        "engine": {"model": done},
        "router": {"engine": healthy},
        "codec": {"model": done, "router": healthy},
    }


def test_only_the_codec_is_reachable_and_only_from_this_machine() -> None:
    published = {name: service.get("ports", []) for name, service in SERVICES.items()}
    assert [name for name, ports in published.items() if ports] == ["codec"]
    assert all(port.startswith("127.0.0.1:") for port in published["codec"])


def test_nothing_runs_as_root_and_only_the_engine_has_torch() -> None:
    for name, text in stages().items():
        if name != "base":
            assert [line for line in text.splitlines() if line.startswith("USER")][-1] == (
                "USER tokenway"
            )
            assert ("torch" in text) == (name == "engine")
