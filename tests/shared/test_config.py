"""Settings come whole, from file and environment, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import pytest

from services.shared.bounds import within
from services.shared.byte_size import ByteSize
from services.shared.config import BadConfig, load, variables
from services.shared.settings import HealthSettings, ServerSettings, TelemetrySettings

ALIASES = {"MODEL_PATH": "executor.model_path", "KV_CACHE_SIZE": "executor.memory.kv_cache_bytes"}


class Device(StrEnum):
    CPU = "cpu"
    CUDA = "cuda"


@dataclass(frozen=True, kw_only=True, slots=True)
class Memory:
    reserve_ratio: float = 0.15
    kv_cache_bytes: ByteSize | None = None
    deterministic_gc: bool = True

    def __post_init__(self) -> None:
        within("reserve_ratio", self.reserve_ratio, 0, 0.9)


@dataclass(frozen=True, kw_only=True, slots=True)
class Executor:
    model_path: Path
    device: Device = Device.CPU
    threads: int | None = None
    memory: Memory = field(default_factory=Memory)


@dataclass(frozen=True, kw_only=True, slots=True)
class Door:
    name: str
    width: float = 1.0
    device: Device | None = None

    def __post_init__(self) -> None:
        within("width", self.width, 0, 9)

    @classmethod
    def parse(cls, text: str) -> Door:
        name, _, width = text.partition("=")
        if not name:
            raise ValueError(f"name must not be empty, got {text}")
        return cls(name=name, width=float(width or 1))


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    executor: Executor
    server: ServerSettings = field(default_factory=lambda: ServerSettings(port=9100))
    health: HealthSettings = field(default_factory=HealthSettings)
    telemetry: TelemetrySettings = field(default_factory=TelemetrySettings)
    replicas: tuple[str, ...] = ()
    doors: tuple[Door, ...] = ()


GOOD = """
server: {port: 0}
executor:
  model_path: /models/one
  memory:
    reserve_ratio: 0.2
    kv_cache_bytes: 512MiB
    deterministic_gc: false
replicas: [127.0.0.1:9100, 127.0.0.1:9101]
health:
"""


def read(folder: Path, text: str, **environ: str) -> Settings:
    path = folder / "engine.yaml"
    path.write_text(text)
    return load(Settings, path, environ, ALIASES)


def fault(folder: Path, text: str, **environ: str) -> str:
    with pytest.raises(BadConfig) as caught:
        read(folder, text, **environ)
    return str(caught.value).replace(str(folder), "…")


def test_a_file_becomes_a_tree_and_what_it_leaves_out_has_its_default(tmp_path: Path) -> None:
    settings = read(tmp_path, GOOD)
    assert settings.executor == Executor(
        model_path=Path("/models/one"),
        memory=Memory(
            reserve_ratio=0.2, kv_cache_bytes=ByteSize(512 * 2**20), deterministic_gc=False
        ),
    )
    assert settings.server.address == "127.0.0.1:0"
    assert settings.replicas == ("127.0.0.1:9100", "127.0.0.1:9101")
    assert settings.health == HealthSettings()


def test_the_environment_goes_before_the_file_and_the_new_name_before_the_old(
    tmp_path: Path,
) -> None:
    settings = read(
        tmp_path,
        GOOD,
        MODEL_PATH="/old",
        KV_CACHE_SIZE="4GB",
        TOKENWAY_EXECUTOR__MODEL_PATH="/new",
        TOKENWAY_EXECUTOR__DEVICE="cuda",
        TOKENWAY_EXECUTOR__MEMORY__DETERMINISTIC_GC="true",
        TOKENWAY_REPLICAS="a:1, b:2",
        TOKENWAY_SERVER__PORT="",
        TOKENWAY_TEST_MODEL="somebody else's",
    )
    assert settings.executor.model_path == Path("/new")
    assert settings.executor.device is Device.CUDA
    assert settings.executor.memory.kv_cache_bytes == 4 * 10**9
    assert settings.executor.memory.deterministic_gc is True
    assert settings.replicas == ("a:1", "b:2")
    assert settings.server.port == 0


def test_a_record_in_a_list_is_a_mapping_or_a_text(tmp_path: Path) -> None:
    text = "doors: [front, back=2, {name: side, width: 3, device: cpu}]"
    front, back = Door(name="front"), Door(name="back", width=2)
    settings = read(tmp_path, text, MODEL_PATH="m")
    assert settings.doors == (front, back, Door(name="side", width=3, device=Device.CPU))
    settings = read(tmp_path, text, MODEL_PATH="m", TOKENWAY_DOORS="back=2, front")
    assert settings.doors == (back, front)


def test_a_section_that_is_set_in_part_keeps_the_rest_of_its_default(tmp_path: Path) -> None:
    settings = read(tmp_path, "server: {host: 127.0.0.2}", MODEL_PATH="m")
    assert settings.server.address == "127.0.0.2:9100"


def test_without_a_file_the_environment_alone_serves() -> None:
    assert load(Settings, None, {"MODEL_PATH": "/m"}, ALIASES).executor.model_path == Path("/m")
    with pytest.raises(BadConfig, match=r"^settings: executor.model_path must be set$"):
        load(Settings, None, {}, ALIASES)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "server: {prt: 1}",
            "…/engine.yaml: server.prt is unknown; there is server.host, server.port",
        ),
        ("sever: {port: 1}", "sever.port is unknown; there is server.port"),
        ("server: {port: many}", "server.port must be an integer, got 'many'"),
        ("server: {port: true}", "server.port must be an integer, got True"),
        ("server: {port: 70000}", "server.port must be between 0 and 65535, got 70000"),
        ("server: 5", "server is unknown"),
        ("server: {host: 127}", "server.host must be text, got 127"),
        ("replicas: a:1", "replicas must be a list, got 'a:1'"),
        ("replicas: [1]", "replicas must be text, got [1]"),
        ("doors: front", "doors must be a list, got 'front'"),
        ("doors: [front, 5]", "doors[1] must be text or a mapping, got 5"),
        ("doors: [front=10]", "doors[0].width must be between 0 and 9, got 10"),
        ("doors: [=1]", "doors[0].name must not be empty, got =1"),
        ("doors: [{name: a, width: 10}]", "doors[0].width must be between 0 and 9, got 10"),
        ("doors: [{name: a, width: x}]", "doors[0].width must be a number, got 'x'"),
        ("doors: [{name: a, height: 1}]", "doors[0].height is unknown"),
        ("doors: [{width: 1}]", "doors[0].name must be set"),
        ("doors: [{name: a, device: tpu}]", "doors[0].device must be one of cpu, cuda"),
        ("executor: {device: tpu}", "executor.device must be one of cpu, cuda, got 'tpu'"),
        ("executor: {memory: {reserve_ratio: .nan}}", "reserve_ratio must be between 0 and 0.9"),
        ("executor: {memory: {kv_cache_bytes: 4 apples}}", "kv_cache_bytes must be bytes, for"),
        ("executor: {memory: {deterministic_gc: 1}}", "deterministic_gc must be true or false"),
        ("health: {readiness_path: ready}", "health.readiness_path must begin with /, got 'ready'"),
        ("server: {port: 1}\nserver: {port: 2}", "key 'server' is there twice"),
        ("server: {port: 1, port: 2}", "key 'port' is there twice"),
        ("1: 2", "key 1 must be text"),
        ("- 1", "must hold keys and values, got list"),
        ("a: [", "is not YAML"),
        ("a: !!python/object/apply:os.getcwd []", "is not YAML"),
    ],
)
def test_a_fault_names_file_key_limit_and_value(tmp_path: Path, text: str, said: str) -> None:
    told = fault(tmp_path, text, MODEL_PATH="m")
    assert said in told
    assert told.startswith("…/engine.yaml")


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("TOKENWAY_SERVER__PORT", "x", "server.port must be an integer, got 'x'"),
        ("TOKENWAY_SERVER__PORT", "-1", "server.port must be between 0 and 65535, got -1"),
        ("TOKENWAY_SERVER__PROT", "1", "server.prot is unknown"),
        ("TOKENWAY_DOORS", "a,b=10", "doors[1].width must be between 0 and 9, got 10"),
        ("TOKENWAY_EXECUTOR__THREADS", "1.5", "executor.threads must be an integer, got '1.5'"),
        ("KV_CACHE_SIZE", "big", "executor.memory.kv_cache_bytes must be bytes"),
    ],
)
def test_a_fault_of_the_environment_names_the_variable(
    tmp_path: Path, name: str, text: str, said: str
) -> None:
    assert fault(tmp_path, GOOD, **{name: text}).startswith(f"{name}: {said}")


def test_a_fault_of_the_file_is_told_also_where_the_environment_says_better(
    tmp_path: Path,
) -> None:
    told = fault(tmp_path, "server: {port: x}", TOKENWAY_SERVER__PORT="1", MODEL_PATH="m")
    assert told == "…/engine.yaml: server.port must be an integer, got 'x'"


def test_a_missing_or_binary_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"none\.yaml cannot be read: No such file"):
        load(Settings, tmp_path / "none.yaml", {}, {})
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(BadConfig, match=r"binary\.yaml is not YAML"):
        load(Settings, path, {}, {})


def test_the_variables_that_speak_to_a_service_are_told_with_their_keys() -> None:
    environ = {"TOKENWAY_SERVER__PORT": "1", "TOKENWAY_OTHER": "2", "MODEL_PATH": "/m", "HOME": "/"}
    assert variables(Settings, environ, ALIASES) == {
        "MODEL_PATH": "executor.model_path",
        "TOKENWAY_SERVER__PORT": "server.port",
    }


@pytest.mark.parametrize(
    ("text", "size"),
    [("0", 0), ("512MiB", 512 * 2**20), ("4GB", 4 * 10**9), ("1.5 GiB", 3 * 2**29), ("7b", 7)],
)
def test_byte_sizes_are_read_with_their_units(text: str, size: int) -> None:
    assert ByteSize.parse(text) == size


@pytest.mark.parametrize("text", ["", "-1", "GB", "1e9", "4 G", "1" * 30, "nan"])
def test_what_is_no_byte_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be bytes"):
        ByteSize.parse(text)
