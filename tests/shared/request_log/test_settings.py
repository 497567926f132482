"""What a request log can be told, and what it refuses without telling a password."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from services.codec.settings import ALIASES, CodecSettings
from services.shared.config import BadConfig, load
from services.shared.request_log.settings import RequestLogSettings, database_url

SECRET = "hunter2"  # noqa: S105 of no account
REQUIRED = {"TOKENWAY_EXECUTOR__MODEL_PATH": "/models/one"}


@pytest.mark.parametrize(
    "url",
    [
        "nothing",
        f"mysql://tokenway:{SECRET}@db/log",
        f"postgresql+asyncpg://tokenway:{SECRET}@db/log",
        f"postgresql://tokenway:{SECRET}@db",
        f"postgresql://tokenway:{SECRET}@db:port/log",
        "sqlite://",
        "sqlite:///:memory:",
        "sqlite:///file:log?mode=memory&uri=true",
        f"sqlite://{SECRET}/log",
    ],
)
def test_a_url_of_something_else_is_refused_without_its_password(url: str) -> None:
    environ = {**REQUIRED, "TOKENWAY_REQUEST_LOG__URL": url}
    with pytest.raises(BadConfig) as caught:
        load(CodecSettings, None, environ, ALIASES)
    assert "request_log.url must be sqlite:///FILE or postgresql" in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"keep_days": 0}, "keep_days must be between 1 and 36500, got 0"),
        ({"password_file": Path("p")}, "password_file must not be set"),
        ({"url": "sqlite:///log", "password_file": Path("p")}, "password_file must not be set"),
    ],
)
def test_what_cannot_be_is_named(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        RequestLogSettings(**fields)


def test_a_password_is_in_no_representation() -> None:
    settings = RequestLogSettings(url=f"postgresql://tokenway:{SECRET}@db/log")
    assert SECRET not in repr(settings)
    assert SECRET not in repr(database_url(settings.url or ""))
    assert settings.driver == "postgresql+psycopg"
