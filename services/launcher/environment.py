"""Which of the launcher's environment each service gets: its own settings, and no other's."""

from __future__ import annotations

from collections.abc import Mapping

from services.codec.settings import ALIASES as CODEC_ALIASES
from services.codec.settings import CodecSettings
from services.engine.settings import ALIASES as ENGINE_ALIASES
from services.engine.settings import EngineSettings
from services.router.settings import RouterSettings
from services.shared.config import PREFIX, SECTION_MARK, BadConfig, variables
from services.shared.config_tree import keys

_SETTINGS: dict[str, tuple[type, Mapping[str, str]]] = {
    "engine": (EngineSettings, ENGINE_ALIASES),
    "router": (RouterSettings, {}),
    "codec": (CodecSettings, CODEC_ALIASES),
}

WIRING = {
    "TOKENWAY_SERVER__PORT": "--http-port, --router-port and --engine-port",
    "TOKENWAY_SERVER__GRPC_PORT": "--grpc-port",
    "TOKENWAY_METRICS__PORT": "--metrics-port",
    "TOKENWAY_SECURITY__CERTIFICATES": "--config-dir, with a file for each service",
    "TOKENWAY_EXECUTOR__ROLE": "--prefill",
    "TOKENWAY_REPLICAS": "--replicas",
    "TOKENWAY_INFERENCE_ENGINE__ENDPOINT": "--router-port",
}
"""What the launcher decides for each service, and the options that say it."""


def check_environment(environ: Mapping[str, str]) -> None:
    """Raises BadConfig for a setting that no service has, or that only an option can say here."""
    known = {name for service in _SETTINGS for name in _known(service, environ)}
    for name in sorted(name for name, text in environ.items() if text):
        if name in WIRING:
            raise BadConfig(f"{name} speaks to one service; tokenway up takes {WIRING[name]}")
        if name.startswith(PREFIX) and SECTION_MARK in name and name not in known:
            raise BadConfig(f"{name}: no service has this setting")


def environment_for(service: str, environ: Mapping[str, str]) -> dict[str, str]:
    """`environ` without the settings that `service` would refuse."""
    known = _known(service, environ)
    return {
        name: text
        for name, text in environ.items()
        if not name.startswith(PREFIX) or SECTION_MARK not in name or name in known
    }


def _known(service: str, environ: Mapping[str, str]) -> set[str]:
    cls, aliases = _SETTINGS[service]
    have = keys(cls)
    return {name for name, key in variables(cls, environ, aliases).items() if key in have}
