"""compose.yaml and the Dockerfile fit each other and the services' settings."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from services.codec.settings import ALIASES as CODEC_ALIASES
from services.codec.settings import CodecSettings
from services.engine.kv.cache_settings import CacheType
from services.engine.settings import ALIASES as ENGINE_ALIASES
from services.engine.settings import EngineSettings, Role
from services.launcher.__main__ import COMMANDS, main
from services.router.settings import RouterSettings
from services.shared.config import load
from tests.redis_server import ServerOptions, redis_server

ROOT = Path(__file__).parents[2]
LAST_WORDS_S = 1
"""What broken off answers have to say so."""

UNSET = re.compile(r"\$\{\w+:-([^}]*)\}")
"""A variable and its value where the environment has none."""

COMPOSE: dict[str, Any] = yaml.safe_load(UNSET.sub(r"\1", (ROOT / "compose.yaml").read_text()))
WATCHING: dict[str, Any] = {
    name: service
    for name, service in COMPOSE["services"].items()
    if service.get("profiles") == ["watch"]
}
SERVICES: dict[str, Any] = {
    name: service for name, service in COMPOSE["services"].items() if name not in WATCHING
}
ENGINES = ("prefill", "decode")
STAGES = {**dict.fromkeys(ENGINES, "engine"), "certs": "router", "admin": "router"}
ROLES = {**dict.fromkeys(ENGINES, "engine"), "router": "router", "codec": "codec"}
MADE_ONCE = {"model", "certs"}
SETTINGS: dict[str, tuple[type[Any], dict[str, str]]] = {
    **dict.fromkeys(ENGINES, (EngineSettings, ENGINE_ALIASES)),
    "router": (RouterSettings, {}),
    "codec": (CodecSettings, CODEC_ALIASES),
}


def stages() -> dict[str, str]:
    """The Dockerfile's stages by name, each with its text."""
    text = (ROOT / "deploy/Dockerfile").read_text()
    parts = re.split(r"^FROM \S+ AS (\w+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.mark.parametrize("name", sorted(SERVICES.keys() - {"cache"}))
def test_each_service_is_built_from_its_stage(name: str) -> None:
    stage = STAGES.get(name, name)
    assert SERVICES[name]["build"]["target"] == stage
    assert stage in stages()
    assert re.fullmatch(rf"tokenway-{stage}:\d+\.\d+\.\d+", SERVICES[name]["image"])


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


def engine(name: str) -> EngineSettings:
    return load(EngineSettings, None, SERVICES[name]["environment"], ENGINE_ALIASES)


def test_the_router_finds_every_engine_of_both_services() -> None:
    settings = load(RouterSettings, None, SERVICES["router"]["environment"], {})
    found = {name.address for name in settings.discovery.names}
    assert found == {f"{name}:{engine(name).server.port}" for name in ENGINES}


def test_one_engine_prefills_in_longer_steps_and_two_decode() -> None:
    prefill, decode = engine("prefill"), engine("decode")
    assert (prefill.executor.role, decode.executor.role) == (Role.PREFILL, Role.DECODE)
    assert SERVICES["decode"]["deploy"] == {"replicas": 2}
    assert prefill.service.batching.token_budget > decode.service.batching.token_budget


@pytest.mark.parametrize("name", ENGINES)
def test_engines_keep_blocks_in_the_cache_and_have_what_that_needs(name: str) -> None:
    cache = engine(name).cache
    assert cache.type is CacheType.DISTRIBUTED
    assert cache.distributed.nodes == ("cache:6379",)
    assert "'.[engine,cache]'" in stages()["engine"]


def test_the_cache_is_bounded_lets_the_oldest_go_and_writes_no_file(tmp_path: Path) -> None:
    cache = SERVICES["cache"]
    assert re.fullmatch(r"valkey/valkey:\d+\.\d+-alpine", cache["image"])
    program, *options = shlex.split(cache["command"])
    assert program == "valkey-server"
    with redis_server(tmp_path, ServerOptions(lines=options)) as server:
        for setting, value in (
            ("maxmemory", b"2147483648"),
            ("maxmemory-policy", b"allkeys-lru"),
            ("save", b""),
            ("appendonly", b"no"),
        ):
            assert server.ask("CONFIG", "GET", setting) == [setting.encode(), value]


def test_only_engines_reach_the_cache() -> None:
    on_its_network = {
        name for name, service in SERVICES.items() if "blocks" in service.get("networks", [])
    }
    assert on_its_network == {"cache", *ENGINES}
    assert SERVICES["cache"]["networks"] == ["blocks"]
    assert COMPOSE["networks"] == {"blocks": {"internal": True}}


def test_the_order_is_model_and_cache_engines_router_codec() -> None:
    healthy, done = "service_healthy", "service_completed_successfully"
    waits = {
        name: {other: wait["condition"] for other, wait in service.get("depends_on", {}).items()}
        for name, service in SERVICES.items()
    }
    assert waits == {
        "model": {},
        "certs": {},
        "admin": {"certs": done},
        "cache": {},
        "prefill": {"model": done, "certs": done, "cache": healthy},
        "decode": {"model": done, "certs": done, "cache": healthy},
        "router": {"certs": done, **dict.fromkeys(ENGINES, healthy)},
        "codec": {"model": done, "certs": done, "router": healthy},
    }
    for name in SERVICES.keys() - MADE_ONCE - {"admin"}:
        assert "healthcheck" in SERVICES[name]


def mounts(name: str) -> dict[str, str]:
    """Where each volume is mounted, with its options."""
    pairs = (mount.partition(":") for mount in SERVICES[name].get("volumes", []))
    return {volume: place for volume, _, place in pairs}


@pytest.mark.parametrize(("name", "role"), [*ROLES.items(), ("admin", "admin")])
def test_each_service_has_the_certificate_of_its_role_and_no_other(name: str, role: str) -> None:
    variable = "TOKENWAY_CERTIFICATES" if name == "admin" else "TOKENWAY_SECURITY__CERTIFICATES"
    folder = SERVICES[name]["environment"][variable]
    held = {volume: place for volume, place in mounts(name).items() if "models" not in volume}
    assert held == {f"{role}-certs": f"{folder}:ro"}
    assert mounts("certs")[f"{role}-certs"] == f"/certs/{role}"


def test_certificates_are_made_where_services_find_them_and_only_there_lies_the_key(
    tmp_path: Path,
) -> None:
    program, *command = SERVICES["certs"]["entrypoint"]
    assert program == "tokenway"
    folder = command[2]
    assert main([str(tmp_path) if word == folder else word for word in command]) == 0
    made = {f"{folder}/{path.name}" for path in tmp_path.iterdir()}
    assert made == {*mounts("certs").values()}
    assert [path.parent.name for path in tmp_path.rglob("ca.key")] == ["ca"]
    assert [name for name in SERVICES if "authority" in mounts(name)] == ["certs"]
    for place in made:  # or the volume there would be root's
        assert place in stages()["base"].split()
    assert {*COMPOSE["volumes"]} == {volume for name in SERVICES for volume in mounts(name)} | {
        "prometheus",
        "grafana",
    }


def test_only_the_codec_is_reachable_and_only_from_this_machine() -> None:
    published = {name: service.get("ports", []) for name, service in SERVICES.items()}
    assert [name for name, ports in published.items() if ports] == ["codec"]
    assert all(port.startswith("127.0.0.1:") for port in published["codec"])


def test_nothing_runs_as_root_and_only_the_engine_has_torch() -> None:
    for name, text in stages().items():
        if name not in {"base", "wheels"}:
            assert [line for line in text.splitlines() if line.startswith("USER")][-1] == (
                "USER tokenway"
            )
            assert ("torch" in text) == (name == "engine")


def test_what_watches_is_pinned_reachable_from_here_alone_and_has_its_files() -> None:
    assert set(WATCHING) == {"prometheus", "grafana", "collector", "jaeger"}
    for service in WATCHING.values():
        assert re.fullmatch(r"[a-z/-]+:v?\d+\.\d+\.\d+", service["image"])
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))
        for mount in service.get("volumes", []):
            place = mount.partition(":")[0]
            assert place in COMPOSE["volumes"] or any((ROOT / place).iterdir())


def test_prometheus_scrapes_each_service_where_it_serves_metrics() -> None:
    path = ROOT / "deploy/prometheus/prometheus.yml"
    jobs = {job["job_name"]: job for job in yaml.safe_load(path.read_text())["scrape_configs"]}
    scraped = {"engine": jobs["engine"]["dns_sd_configs"][0]}
    assert scraped["engine"]["names"] == [*ENGINES]
    ports = {
        name: load(cls, None, SERVICES[name]["environment"], aliases).metrics.port
        for name, (cls, aliases) in SETTINGS.items()
    }
    assert {ports[name] for name in ENGINES} == {scraped["engine"]["port"]}
    for name in ("router", "codec"):
        assert jobs[name]["static_configs"] == [{"targets": [f"{name}:{ports[name]}"]}]


def test_spans_go_to_the_collector_and_on_to_jaeger() -> None:
    told = yaml.safe_load((ROOT / "deploy/collector/collector.yml").read_text())
    assert told["receivers"]["otlp"]["protocols"]["grpc"]["endpoint"].endswith(":4317")
    (exporter,) = told["service"]["pipelines"]["traces"]["exporters"]
    assert told["exporters"][exporter]["endpoint"].partition(":")[0] in WATCHING
