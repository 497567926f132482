"""What `tokenway up` decides, and what it leaves to the services' own files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from services.engine.kv.cache_settings import CacheType
from services.launcher.plan import Plan, module_of
from services.launcher.up_options import UpOptions, up_options
from services.shared.config import BadConfig


def plan(*argv: str, **environ: str) -> Plan:
    options = up_options(["--model", "/models/one", *argv])
    return Plan(options=options, program=module_of, environ=environ)


@pytest.fixture
def config_dir(tmp_path: Path) -> Path:
    (tmp_path / "engine.yaml").write_text("server: {port: 7100}\nexecutor: {threads: 5}\n")
    (tmp_path / "codec.yaml").write_text(
        "server: {grpc_port: 7081}\nhealth: {readiness_path: /ready}\n"
    )
    return tmp_path


def test_the_default_ports_are_those_of_the_documents() -> None:
    assert plan().engine(0).environ["TOKENWAY_SERVER__PORT"] == "9100"
    assert plan().engine(2).environ["TOKENWAY_SERVER__PORT"] == "9102"
    assert plan().router([]).environ["TOKENWAY_SERVER__PORT"] == "9000"
    codec = plan().codec("127.0.0.1:9000").environ
    assert codec["TOKENWAY_SERVER__PORT"] == "8080"
    assert codec["TOKENWAY_SERVER__GRPC_PORT"] == "8081"
    assert codec["TOKENWAY_INFERENCE_ENGINE__ENDPOINT"] == "127.0.0.1:9000"


def test_metrics_are_served_above_a_services_ports_unless_somebody_says_where(
    config_dir: Path,
) -> None:
    metrics = "TOKENWAY_METRICS__PORT"
    assert [plan().engine(index).environ[metrics] for index in (0, 2)] == ["9400", "9402"]
    assert plan("--engine-port", "6100").engine(1).environ[metrics] == "6401"
    assert plan("--engine-port", "0").engine(1).environ[metrics] == "0"
    assert plan("--metrics-port", "0").engine(1).environ[metrics] == "0"
    assert plan("--metrics-port", "6500").engine(1).environ[metrics] == "6501"
    (config_dir / "engine.yaml").write_text("metrics: {port: 7400}\n")
    assert plan("--config-dir", str(config_dir)).engine(1).environ[metrics] == "7401"
    again = plan("--engine-port", "0").engine(0).at({"metrics": "127.0.0.1:4001"})
    assert again.environ[metrics] == "4001"
    assert plan().router([]).environ[metrics] == "9300"
    assert plan("--router-port", "0").router([]).environ[metrics] == "0"
    assert plan().codec("").environ[metrics] == "8380"
    (config_dir / "router.yaml").write_text("metrics: {port: 7500}\n")
    assert plan("--config-dir", str(config_dir)).router([]).environ[metrics] == "7500"


def test_engines_share_what_they_computed_unless_somebody_says_how(config_dir: Path) -> None:
    cache_type = "TOKENWAY_CACHE__TYPE"
    assert plan().engine(0).environ[cache_type] == "embedded"
    assert cache_type not in plan().router([]).environ
    assert plan(**{cache_type: "none"}).engine(0).environ[cache_type] == "none"
    assert plan(**{cache_type: "none"}).cache().type is CacheType.NONE
    assert plan(TOKENWAY_CACHE__EMBEDDED__PATH="/x").cache().embedded.path == Path("/x")
    (config_dir / "engine.yaml").write_text("cache: {type: none}\n")
    filed = plan("--config-dir", str(config_dir))
    assert cache_type not in filed.engine(0).environ
    assert filed.cache().type is CacheType.NONE


def test_a_folder_that_takes_no_file_is_left_alone_unless_somebody_insists(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    folder = tmp_path / "file" / "kv"
    bad = {"TOKENWAY_CACHE__EMBEDDED__PATH": str(folder)}
    assert plan(**bad).unusable_folder() == folder
    assert plan(**bad).cache().type is CacheType.NONE
    insisting = plan(**bad, TOKENWAY_CACHE__TYPE="embedded")
    assert insisting.unusable_folder() is None
    assert insisting.cache().type is CacheType.EMBEDDED


def test_engines_that_prefill_come_after_those_that_decode() -> None:
    role, port = "TOKENWAY_EXECUTOR__ROLE", "TOKENWAY_SERVER__PORT"
    assert role not in plan("--replicas", "2").engine(1).environ
    split = plan("--replicas", "2", "--prefill", "1")
    told = [split.engine(index).environ for index in range(split.options.engines)]
    assert [environ[role] for environ in told] == ["decode", "decode", "prefill"]
    assert [environ[port] for environ in told] == ["9100", "9101", "9102"]


def test_a_file_goes_before_a_default_and_an_option_before_a_file(config_dir: Path) -> None:
    filed = plan("--config-dir", str(config_dir))
    assert filed.engine(1).environ["TOKENWAY_SERVER__PORT"] == "7101"
    assert filed.engine(1).command[-2:] == ("--config", str(config_dir / "engine.yaml"))
    assert filed.router([]).command[-1] == "services.router"
    assert filed.threads() == 5
    assert filed.readiness_path() == "/ready"
    assert filed.codec("r").environ["TOKENWAY_SERVER__GRPC_PORT"] == "7081"
    told = plan("--config-dir", str(config_dir), "--engine-port", "6100")
    assert told.engine(1).environ["TOKENWAY_SERVER__PORT"] == "6101"


def test_the_cores_are_shared_between_the_engines() -> None:
    cores = len(os.sched_getaffinity(0))
    assert plan().threads() == cores
    assert plan("--replicas", "64").threads() == max(1, cores // 64)
    assert plan("--prefill", str(cores - 1)).threads() == 1
    assert plan(TOKENWAY_EXECUTOR__THREADS="3").threads() == 3
    bad = plan(TOKENWAY_EXECUTOR__THREADS="x").engine(0)
    assert bad.environ["TOKENWAY_EXECUTOR__THREADS"] == "x"


def test_simulation_and_replicas_reach_the_services() -> None:
    assert "TOKENWAY_EXECUTOR__SIMULATE" not in plan().engine(0).environ
    assert plan("--simulate").engine(0).environ["TOKENWAY_EXECUTOR__SIMULATE"] == "true"
    router = plan().router(["127.0.0.1:1", "127.0.0.1:2"])
    assert router.environ["TOKENWAY_REPLICAS"] == "127.0.0.1:1,127.0.0.1:2"


def test_a_process_that_starts_again_keeps_its_ports() -> None:
    launch = plan("--http-port", "0", "--grpc-port", "0").codec("r")
    again = launch.at({"http": "127.0.0.1:4001", "grpc": "127.0.0.1:4002"})
    assert again.environ["TOKENWAY_SERVER__PORT"] == "4001"
    assert again.environ["TOKENWAY_SERVER__GRPC_PORT"] == "4002"
    assert again.command == launch.command


def test_options_come_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKENWAY_HTTP_PORT", "8888")
    monkeypatch.setenv("MODEL_PATH", "/models/two")
    assert up_options([]) == UpOptions(model=Path("/models/two"), http_port=8888)
    assert up_options(["--http-port", "1"]).http_port == 1


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--replicas", "0"], "--replicas: must be between 1 and 64, got 0"),
        (["--replicas", "x"], "--replicas"),
        (["--prefill", "65"], "--prefill: must be between 0 and 64, got 65"),
        (["--http-port", "70000"], "--http-port: must be between 0 and 65535, got 70000"),
        (["--modle", "x"], "unrecognized arguments: --modle"),
    ],
)
def test_a_wrong_option_is_named(
    argv: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        up_options([*argv])
    assert said in capsys.readouterr().err


def test_nothing_settles_that_only_the_launcher_stops_unless_somebody_says_so(
    config_dir: Path,
) -> None:
    settle = "TOKENWAY_SERVICE__LIMITS__SETTLE_S"
    quick = plan()
    launches = [quick.engine(0), quick.router([]), quick.codec("127.0.0.1:9000")]
    assert [launch.environ[settle] for launch in launches] == ["0"] * 3
    assert plan(**{settle: "2"}).router([]).environ[settle] == "2"
    (config_dir / "router.yaml").write_text("service: {limits: {settle_s: 3}}\n")
    filed = plan("--config-dir", str(config_dir))
    assert settle not in filed.router([]).environ
    assert filed.engine(0).environ[settle] == "0"


def test_services_break_off_before_the_launchers_patience_ends(config_dir: Path) -> None:
    drain = "TOKENWAY_SERVICE__LIMITS__DRAIN_TIMEOUT_S"
    assert plan().codec("127.0.0.1:9000").environ[drain] == "29"
    assert plan("--drain-s", "0.5").engine(0).environ[drain] == "0"
    assert plan("--drain-s", "9000").router([]).environ[drain] == "3600"
    (config_dir / "engine.yaml").write_text("service: {limits: {drain_timeout_s: 3}}\n")
    assert drain not in plan("--config-dir", str(config_dir)).engine(0).environ


FOLDER, MTLS = "TOKENWAY_SECURITY__CERTIFICATES", "TOKENWAY_SECURITY__MTLS"


def test_each_service_has_a_certificate_of_its_own() -> None:
    told = plan("--replicas", "2", "--key-dir", "/k", **{MTLS: "1"})
    launches = [told.engine(0), told.engine(1), told.router([]), told.codec("r")]
    assert [one.environ[FOLDER] for one in launches] == [
        f"/k/certs/{name}" for name in ("engine-0", "engine-1", "router", "codec")
    ]
    assert told.engine_names == ["engine-0", "engine-1"]
    assert told.mesh.shown == Path("/k/certs/admin")


def test_without_certificates_nobody_is_told_of_any(config_dir: Path) -> None:
    clear = plan(**{MTLS: "false"})
    assert clear.mesh.shown is None
    for one in (clear.engine(0), clear.router([]), clear.codec("r")):
        assert (one.environ[MTLS], one.environ.get(FOLDER)) == ("false", None)
    (config_dir / "router.yaml").write_text("security: {mtls: false}\n")
    filed = plan("--config-dir", str(config_dir))
    assert filed.engine(0).environ[MTLS] == "false"  # or it would meet nobody
    (config_dir / "codec.yaml").write_text("security: {mtls: true}\n")
    with pytest.raises(BadConfig, match=r"router\.yaml says false, codec\.yaml says true"):
        _ = plan("--config-dir", str(config_dir)).mesh
    assert plan("--config-dir", str(config_dir), **{MTLS: "false"}).mesh.shown is None


def test_services_may_have_certificates_of_their_own_all_of_them(config_dir: Path) -> None:
    for name in ("engine", "router"):
        (config_dir / f"{name}.yaml").write_text("security: {mtls: true, certificates: /x}\n")
    options = ("--config-dir", str(config_dir))
    with pytest.raises(BadConfig, match=r"engine\.yaml has it, codec\.yaml not"):
        _ = plan(*options).mesh
    (config_dir / "codec.yaml").write_text("security: {certificates: /y}\n")
    with pytest.raises(BadConfig, match=r"TOKENWAY_CERTIFICATES must name"):
        _ = plan(*options).mesh
    told = plan(*options, TOKENWAY_CERTIFICATES="/admin")
    assert told.mesh.shown == Path("/admin")
    assert FOLDER not in told.router([]).environ  # its file says it


def test_a_word_that_is_neither_true_nor_false_is_refused() -> None:
    with pytest.raises(BadConfig, match=r"TOKENWAY_SECURITY__MTLS: .* must be true or false"):
        _ = plan(**{MTLS: "off"}).mesh


def test_the_launcher_asks_the_codec_by_the_scheme_that_it_speaks(config_dir: Path) -> None:
    assert plan().scheme == "http"
    assert plan(TOKENWAY_SERVER__TLS__CERTIFICATE="/x").scheme == "https"
    (config_dir / "codec.yaml").write_text("server: {tls: {certificate: /x, key: /y}}\n")
    assert plan("--config-dir", str(config_dir)).scheme == "https"


def test_callers_show_the_key_of_this_machine_unless_somebody_says_who_may_ask(
    config_dir: Path,
) -> None:
    keys = "TOKENWAY_SECURITY__KEYS_FILE"
    assert plan("--key-dir", "/k").codec("r").environ[keys] == "/k/keys.json"
    told = plan(TOKENWAY_SECURITY__OPEN="true")
    assert not told.asks_for_dev_key
    assert keys not in told.codec("r").environ
    assert plan(TOKENWAY_SECURITY__MTLS="false").asks_for_dev_key
    (config_dir / "codec.yaml").write_text("security: {mtls: false, certificates: /x}\n")
    assert plan("--config-dir", str(config_dir)).asks_for_dev_key
    (config_dir / "codec.yaml").write_text("security: {open: true}\n")
    filed = plan("--config-dir", str(config_dir))
    assert not filed.asks_for_dev_key
    assert keys not in filed.codec("r").environ


def test_requests_and_what_operators_do_are_noted_unless_somebody_says_where(
    config_dir: Path, tmp_path: Path
) -> None:
    url, audit = "TOKENWAY_REQUEST_LOG__URL", "TOKENWAY_SECURITY__AUDIT_FILE"
    folder = tmp_path / "own"
    own = plan("--key-dir", str(folder))
    assert own.codec("r").environ[url] == f"sqlite:///{folder}/requests.db"
    for launch in (own.codec("r"), own.router([]), own.engine(0)):
        assert launch.environ[audit] == str(folder / "audit.jsonl")
    assert url not in own.router([]).environ
    assert plan(**{url: "postgresql://db/log"}).codec("r").environ[url] == "postgresql://db/log"
    (config_dir / "codec.yaml").write_text("request_log: {url: 'sqlite:///x'}\nsecurity: {}\n")
    (config_dir / "router.yaml").write_text("security: {audit_file: x}\n")
    filed = plan("--config-dir", str(config_dir))
    assert url not in filed.codec("r").environ
    assert audit in filed.codec("r").environ
    assert audit not in filed.router([]).environ
    (tmp_path / "file").write_text("")
    nowhere = plan("--key-dir", str(tmp_path / "file")).codec("r").environ
    assert url not in nowhere
    assert audit not in nowhere


def test_a_router_hears_of_keys_only_where_it_can_tell_the_codec_from_who_shows_them() -> None:
    said = {"TOKENWAY_SECURITY__KEYS_FILE": "keys.json", "TOKENWAY_SECURITY__AUDIT_FILE": "a"}
    router = plan(**said).router([]).environ
    assert {name: router.get(name) for name in said} == said
    in_the_clear = plan(**said, TOKENWAY_SECURITY__MTLS="false")
    assert "TOKENWAY_SECURITY__KEYS_FILE" not in in_the_clear.router([]).environ
    assert in_the_clear.router([]).environ["TOKENWAY_SECURITY__AUDIT_FILE"] == "a"
    assert in_the_clear.codec("").environ["TOKENWAY_SECURITY__KEYS_FILE"] == "keys.json"
    tenants = plan(**said, TOKENWAY_SECURITY__TENANTS_FILE="tenants.yaml")
    assert "TOKENWAY_SECURITY__TENANTS_FILE" not in tenants.router([]).environ
