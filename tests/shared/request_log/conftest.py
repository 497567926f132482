from __future__ import annotations

from pathlib import Path

import pytest

from services.shared.request_log.settings import RequestLogSettings


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "log" / "requests.db"


@pytest.fixture
def settings(file: Path) -> RequestLogSettings:
    return RequestLogSettings(url=f"sqlite:///{file}")
