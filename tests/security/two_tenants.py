"""A real stack with keys, limits, a request log and a receiver of spans, and two who use it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from services.codec.http_routes import ANSWERS
from services.launcher.books import REQUESTS
from services.launcher.dev_key import KEYS
from services.launcher.keys_command import create_key
from services.shared.model_folder import ModelFolder
from tests.integration.span_collector import SpanCollector, collecting
from tests.integration.stack import PATIENCE_S
from tests.integration.up_process import UpProcess, up_process

VICTIM, SPY = "acme-holdings", "globex-labs"
PRIVATE, SHARED = "model-of-acme", "model-of-all"
WORDS = "Zanzibarian xylophone quokkas hum, and nobody but acme may know of it"
SALT = "salt-of-acme"
REFUSED = "refused-request-of-acme"
TRACE = "ab" * 16
WRONG_KEY = "tw_ab12cd34-not-a-key-of-ours"
LIMITS = {"tenants": [VICTIM, {"tenant": SPY, "models": [SHARED], "max_concurrency": 1}]}
MESSAGES = "/v1/messages"
TEXTS = {
    "/v1/chat/completions": lambda told: told["choices"][0]["message"]["content"],
    "/v1/completions": lambda told: told["choices"][0]["text"],
    MESSAGES: lambda told: told["content"][0]["text"],
    "/v1/responses": lambda told: told["output"][0]["content"][0]["text"],
}


def body(path: str, words: str, model: str = SHARED, **changes: Any) -> dict[str, Any]:
    """What is asked by the protocol of a path."""
    said = {"/v1/completions": {"prompt": words}, "/v1/responses": {"input": words}}
    asked = said.get(path, {"messages": [{"role": "user", "content": words}]})
    # Each protocol ignores what belongs to another.
    lengths = {"max_tokens": 24, "max_output_tokens": 24, "ignore_eos": True}
    return {"model": model, **asked, **lengths, **changes}


def parent(trace_id: str) -> str:
    """Of a request in that trace."""
    return f"00-{trace_id}-{'cd' * 8}-01"


@dataclass(frozen=True, kw_only=True, slots=True)
class Exchange:
    """What a caller sent, and all that it got for it."""

    sent: str
    got: str
    status: int = 200
    answer: Any = None

    def tells(self, secrets: Iterable[str]) -> list[str]:
        """Those of them that it did not say itself."""
        return [secret for secret in secrets if secret in self.got and secret not in self.sent]


@dataclass(frozen=True, kw_only=True, slots=True)
class Tenant:
    """One who has a key, and a client that shows it."""

    name: str
    key: str
    client: httpx.Client

    def ask(self, method: str, path: str, asked: Any = None, **headers: str) -> Exchange:
        shown = {"x-api-key": self.key, "x-tokenway-timeline": "1"}
        shown |= {name.replace("_", "-"): value for name, value in headers.items()}
        told = self.client.request(method, path, json=asked, headers=shown)
        sent = f"{path} {headers} {json.dumps(asked)}"
        got = f"{told.status_code} {told.headers.multi_items()} {told.text}"
        return Exchange(sent=sent, got=got, status=told.status_code, answer=told)

    def post(self, path: str, asked: Any, **headers: str) -> Exchange:
        return self.ask("POST", path, asked, **headers)


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A stack with two tenants; `secrets` are those of the one that was there first."""

    up: UpProcess
    collector: SpanCollector
    victim: Tenant
    spy: Tenant
    secrets: tuple[str, ...]
    reply_ids: Mapping[str, str]
    request_ids: Sequence[str]

    @property
    def file(self) -> str:
        return str(self.up.key_file.with_name(REQUESTS))


@contextmanager
def watching(folder: Path, model: ModelFolder) -> Iterator[Watched]:
    """The stack inside the block, where the victim has been."""
    keys = {name: create_key(folder / KEYS, name, "test").text for name in (VICTIM, SPY)}
    (folder / "tenants.yaml").write_text(yaml.safe_dump(LIMITS))
    with (
        collecting() as (collector, endpoint),
        pytest.MonkeyPatch.context() as patch,
        httpx.Client(timeout=PATIENCE_S) as client,
    ):
        patch.setenv("TOKENWAY_TELEMETRY__OTLP_ENDPOINT", endpoint)
        patch.setenv("TOKENWAY_SECURITY__KEYS_FILE", str(folder / KEYS))
        patch.setenv("TOKENWAY_SECURITY__TENANTS_FILE", str(folder / "tenants.yaml"))
        patch.setenv("TOKENWAY_SERVICE__MODEL_NAMES", f"{PRIVATE},{SHARED}")
        with up_process(folder, model) as up:
            client.base_url = httpx.URL(f"http://{up.address('http')}")
            victim, spy = (Tenant(name=name, key=keys[name], client=client) for name in keys)
            yield lived(up, collector, victim, spy)


def lived(up: UpProcess, collector: SpanCollector, victim: Tenant, spy: Tenant) -> Watched:
    """The victim asks by every protocol, in its own trace, and once with a key that is none."""
    own = {"cache_salt": SALT, "user": WORDS}
    asked = {path: body(path, WORDS, PRIVATE, **own) for path in ANSWERS}
    told = {path: victim.post(path, asked[path], traceparent=parent(TRACE)) for path in ANSWERS}
    for path in ANSWERS:
        refused = victim.post(path, asked[path], x_api_key=WRONG_KEY, x_request_id=REFUSED)
        assert refused.status == 401
    assert not [one.got for one in told.values() if one.status != 200]
    answers = {path: one.answer.json() for path, one in told.items()}
    request_ids = [one.answer.headers["x-request-id"] for one in told.values()]
    reply_ids = {path: answer["id"] for path, answer in answers.items()}
    secrets = (VICTIM, victim.key, victim.key[:11], PRIVATE, *WORDS.split()[:3], SALT, REFUSED)
    texts = [text for path, answer in answers.items() for text in spelt(TEXTS[path](answer))]
    return Watched(
        up=up,
        collector=collector,
        victim=victim,
        spy=spy,
        secrets=(*secrets, TRACE, *request_ids, *reply_ids.values(), *texts),
        reply_ids=reply_ids,
        request_ids=request_ids,
    )


def spelt(text: str) -> Sequence[str]:
    """As JSON may have it."""
    assert text
    return [json.dumps(text, ensure_ascii=is_ascii)[1:-1] for is_ascii in (True, False)]
