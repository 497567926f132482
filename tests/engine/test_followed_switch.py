"""The file's switch is followed; an operator's word holds until the file says something else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tokenway.engine.v1.engine_pb2 import SetServiceCacheRequest

from services.engine.followed_switch import followed_switch, switched_by
from services.shared.access import followed_file
from services.shared.config import BadConfig
from tests.engine.harness import simulated
from tests.engine.served import Served, served
from tests.waiting import until

MODEL = "executor: {model_path: somewhere}\n"


def say(path: Path, text: str) -> None:
    """As editors and kubelets do: whole, in one moment."""
    fresh = path.with_suffix(".new")
    fresh.write_text(MODEL + text)
    fresh.rename(path)


def switch(path: Path, *, enabled: bool) -> None:
    say(path, f"cache: {{enabled: {str(enabled).lower()}}}\n")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("services.engine.followed_switch.INTERVAL_S", 0.005)
    path = tmp_path / "engine.yaml"
    switch(path, enabled=True)
    return path


@asynccontextmanager
async def followed(path: Path) -> AsyncIterator[Served]:
    file = followed_switch(path)
    async with served(simulated()) as engine, switched_by(file, engine.caches):
        yield engine


def is_on(engine: Served) -> bool:
    return engine.caches.switch.enabled


async def test_a_new_value_in_the_file_is_set(path: Path) -> None:
    async with followed(path) as engine:
        switch(path, enabled=False)
        await until(lambda: not is_on(engine))
        switch(path, enabled=True)
        await until(lambda: is_on(engine))


async def test_an_operators_word_holds_until_the_value_changes(
    path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", followed_file.__name__)
    async with followed(path) as engine:
        await engine.service.SetServiceCache(SetServiceCacheRequest(enabled=False))
        say(path, "cache: {enabled: true, read_timeout_s: 1}\n")
        await until(lambda: "has changed" in caplog.text)
        assert not is_on(engine)
        switch(path, enabled=False)
        await until(lambda: caplog.text.count("has changed") == 2)
        switch(path, enabled=True)
        await until(lambda: is_on(engine))


@pytest.mark.parametrize("text", ["cache: {enabled: ", "cache: {enabled: perhaps}\n", "x: 1\n"])
async def test_a_file_that_cannot_be_used_is_told_once_and_changes_nothing(
    path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with followed(path) as engine:
        switch(path, enabled=False)
        await until(lambda: not is_on(engine))
        say(path, text)
        await until(lambda: "counts on" in caplog.text)
        assert not is_on(engine)
        switch(path, enabled=True)
        await until(lambda: is_on(engine))
    assert caplog.text.count("counts on") == 1


async def test_the_environment_goes_before_the_file(
    path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", followed_file.__name__)
    monkeypatch.setenv("TOKENWAY_CACHE__ENABLED", "true")
    async with followed(path) as engine:
        switch(path, enabled=False)
        await until(lambda: "has changed" in caplog.text)
        assert is_on(engine)


def test_a_file_that_cannot_be_used_stops_the_start(path: Path) -> None:
    say(path, "cache: {enabled: perhaps}\n")
    with pytest.raises(BadConfig, match=r"cache\.enabled must be true or false"):
        followed_switch(path)
