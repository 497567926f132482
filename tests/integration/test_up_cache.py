"""What `tokenway up` has read is found again when it starts anew, and its commands tell of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from services.launcher.cache_command import main as cache
from services.launcher.usage_command import main as usage_of
from services.shared.model_folder import ModelFolder
from tests.integration.stack import PATIENCE_S
from tests.integration.up_process import UpProcess, up_process
from tests.redis_server import wait_for
from tests.shared.audit.noted import events_in

WORDS = " ".join(f"word {number}" for number in range(300))


def asked(up: UpProcess, model: ModelFolder) -> dict[str, Any]:
    """The usage of an answer to a long prompt."""
    message = {"role": "user", "content": WORDS}
    body = {"model": model.name, "messages": [message], "max_tokens": 4}
    url = f"http://{up.address('http')}/v1/chat/completions"
    answer = httpx.post(url, json=body, headers=up.headers, timeout=PATIENCE_S)
    assert answer.status_code == 200, answer.text
    usage: dict[str, Any] = answer.json()["usage"]
    return usage


def told(up: UpProcess, capsys: pytest.CaptureFixture[str], *action: str) -> dict[str, Any]:
    """What `tokenway cache` says to programs."""
    shown = ("--certificates", str(up.admin))
    assert cache([*action, "--at", up.address("router"), "--json", *shown]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def service_tier(stats: dict[str, Any]) -> dict[str, Any]:
    (tier,) = [one for one in stats["tiers"] if one["tier"] == "CACHE_TIER_SERVICE"]
    return dict(tier)


def test_a_prompt_is_found_after_a_restart(
    tmp_path: Path, model_folder: ModelFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    with up_process(tmp_path, model_folder) as up:
        assert up.line("cache").split()[1:4] == ["embedded", "in", f"{tmp_path / 'kv'},"]
        usage = asked(up, model_folder)
        assert usage["prompt_tokens_details"]["cached_tokens"] == 0
        usable = (usage["prompt_tokens"] - 1) // 16
        wait_for(lambda: int(service_tier(told(up, capsys, "stats"))["written_blocks"]) >= usable)
    with up_process(tmp_path, model_folder) as up:
        again = asked(up, model_folder)
        assert again["prompt_tokens_details"]["cached_tokens"] == usable * 16
        stats = told(up, capsys, "stats")
        assert int(service_tier(stats)["hit_blocks"]) == usable
        (engine,) = stats["replicas"].values()
        assert engine["tiers"] == stats["tiers"]


def test_what_is_switched_off_and_flushed_is_not_found(
    tmp_path: Path, model_folder: ModelFolder, capsys: pytest.CaptureFixture[str]
) -> None:
    with up_process(tmp_path, model_folder) as up:
        usage = asked(up, model_folder)
        usable = (usage["prompt_tokens"] - 1) // 16
        wait_for(lambda: int(service_tier(told(up, capsys, "stats"))["written_blocks"]) >= usable)
        assert told(up, capsys, "off") == {"enabled": False}
        assert int(told(up, capsys, "flush")["dropped_blocks"]) >= usable
        assert asked(up, model_folder)["prompt_tokens_details"]["cached_tokens"] == 0
        assert told(up, capsys, "on") == {"enabled": True}
        assert int(told(up, capsys, "flush")["dropped_blocks"]) >= usable
        assert asked(up, model_folder)["prompt_tokens_details"]["cached_tokens"] == usable * 16
        assert int(told(up, capsys, "flush", "--service")["dropped_service_blocks"]) >= usable
        assert asked(up, model_folder)["prompt_tokens_details"]["cached_tokens"] == 0
    _check_books(tmp_path, capsys)


def _check_books(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was done stands in the audit file, by each service, and what was asked in the log."""
    noted = events_in(folder / "audit.jsonl")
    assert (noted[0]["service"], noted[0]["action"]) == ("up", "key create")
    for service in ("router", "engine"):
        done = [(one["action"], one["what"]) for one in noted if one["service"] == service]
        off, on, own = ("cache", "off"), ("cache", "on"), ("cache flush", "own")
        assert done == [off, own, on, own, ("cache flush", "also of the service")]
    assert {one["outcome"] for one in noted} == {"done"}
    operators = [one["who"] for one in noted if one["service"] == "router"]
    assert all(who.startswith(("spiffe://tokenway/admin/", "address:")) for who in operators)
    assert usage_of(["--file", str(folder / "requests.db"), "--json"]) == 0
    (dev,) = json.loads(capsys.readouterr().out)["usage"]
    assert (dev["tenant"], dev["requests"]["finished"], dev["completion_tokens"]) == ("dev", 4, 16)
