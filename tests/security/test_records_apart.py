"""Two tenants of a real stack: no row, trace or word of one is in anything that the other gets."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import grpc
import httpx
import pytest
from google.api.httpbody_pb2 import HttpBody
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from services.codec.http_routes import ANSWERS
from services.launcher.__main__ import main
from services.shared.model_folder import ModelFolder
from services.shared.tls.certificate_files import read_certificates
from services.shared.tls.identity import Role, server_name
from tests.integration.stack import PATIENCE_S
from tests.security.two_tenants import (
    MESSAGES,
    PRIVATE,
    SALT,
    SHARED,
    SPY,
    TRACE,
    VICTIM,
    WORDS,
    WRONG_KEY,
    Exchange,
    Watched,
    body,
    parent,
    watching,
)
from tests.waiting import until

MARK = "free-text-of-a-caller"
SERVICES = ("codec", "router", "engine")
RPCS = {"ChatCompletions": "/v1/chat/completions", "Messages": MESSAGES}


@pytest.fixture(scope="module")
def watched(
    model_folder: ModelFolder, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Watched]:
    with watching(tmp_path_factory.mktemp("apart"), model_folder) as stack:
        yield stack


def test_an_answer_tells_its_own_caller_alone(watched: Watched) -> None:
    """By every protocol, whole and as a stream, with all that a caller may be told beside it."""
    for path in ANSWERS:
        for stream in (False, True):
            told = watched.spy.post(path, body(path, "hello", stream=stream))
            assert told.status == 200, told.got
            assert '"routed"' in told.got
            assert not told.tells(watched.secrets)
    for path in ("/v1/models", "/", "/healthz", "/readyz"):
        assert not watched.spy.ask("GET", path).tells(watched.secrets)


@pytest.mark.parametrize("path", ANSWERS)
def test_an_error_tells_nothing_of_another(watched: Watched, path: str) -> None:
    spy, asked = watched.spy, body(path, MARK)
    refused = {
        "another's model": spy.post(path, body(path, MARK, PRIVATE)),
        "no model": spy.post(path, {key: asked[key] for key in asked if key != "model"}),
        "a model of nobody": spy.post(path, body(path, MARK, MARK)),
        "no object": spy.post(path, [MARK]),
        "a wrong field": spy.post(path, asked | {"temperature": MARK}),
        "a wrong key": spy.post(path, asked, x_api_key=WRONG_KEY),
        "no key": spy.post(path, asked, x_api_key=""),
        "too many at a time": spy.post(path, asked | {"n": 2, "stream": True}),
        "a method that is none": spy.ask("GET", path),
        "a path that is none": spy.post(f"{path}/{MARK}", asked),
    }
    for told in refused.values():
        assert not told.tells(watched.secrets)
    others, nobodys = (refused[name] for name in ("another's model", "a model of nobody"))
    words = [one.answer.json()["error"]["message"] for one in (others, nobodys)]
    assert words[0].replace(PRIVATE, MARK) == words[1]
    assert others.status == nobodys.status == 404


@pytest.mark.parametrize("path", ANSWERS)
def test_names_of_anothers_answers_bring_none(watched: Watched, path: str) -> None:
    spy, reply_id, made = watched.spy, watched.reply_ids[path], watched.request_ids[0]
    for name in (reply_id, made, TRACE):
        for method in ("GET", "DELETE", "POST"):
            for below in ("", "/cancel", "/input_items", "/messages"):
                told = spy.ask(method, f"{path}/{name}{below}")
                assert told.status == 404
                assert not told.tells(watched.secrets)
    for told in (
        spy.post(path, body(path, "go on", previous_response_id=reply_id, conversation=reply_id)),
        spy.post(
            path, body(path, "go on", cache_salt=SALT, user=WORDS, metadata={"tenant": VICTIM})
        ),
        spy.post(path, body(path, "go on"), x_request_id=made, traceparent=parent(TRACE)),
        spy.post(path, body(path, "go on"), x_tenant=VICTIM, x_forwarded_for="10.0.0.1"),
    ):
        assert not told.tells(watched.secrets)


def test_a_request_id_in_use_is_no_way_to_its_answer(watched: Watched) -> None:
    """Nor to its end: both are answered."""
    victim, spy, name = watched.victim, watched.spy, "request-that-runs"
    asked = body(MESSAGES, WORDS, PRIVATE, stream=True, max_tokens=1000)
    shown = {"x-api-key": victim.key, "x-request-id": name}
    with victim.client.stream("POST", MESSAGES, json=asked, headers=shown) as answer:
        lines = answer.iter_lines()
        first = next(lines)
        told = spy.post(MESSAGES, body(MESSAGES, "hello"), x_request_id=name)
        rest = list(lines)
    assert told.status == 200
    assert told.answer.json()["usage"]["output_tokens"] == 24
    assert not told.tells(watched.secrets)
    assert (first, rest[-3]) == ("event: message_start", "event: message_stop")


def test_the_grpc_door_tells_its_own_caller_alone(watched: Watched) -> None:
    files = read_certificates(watched.up.admin)
    named = [("grpc.ssl_target_name_override", server_name(Role.CODEC))]
    credentials = grpc.ssl_channel_credentials(files.ca)
    metadata = {
        "x-api-key": watched.spy.key,
        "x-tokenway-timeline": "1",
        "x-request-id": watched.request_ids[0],
        "traceparent": parent(TRACE),
    }
    with grpc.secure_channel(watched.up.address("grpc"), credentials, named) as channel:
        for method, path in RPCS.items():
            call = channel.unary_stream(
                f"/tokenway.codec.v1.CodecService/{method}",
                HttpBody.SerializeToString,
                HttpBody.FromString,
            )
            for model in (SHARED, PRIVATE):
                data = json.dumps(body(path, "hello", model))
                request = HttpBody(data=data.encode())
                answer = call(request, metadata=tuple(metadata.items()), timeout=PATIENCE_S)
                got = f"{called(answer)} {answer.trailing_metadata()}"
                assert "x-request-id" in got
                told = Exchange(sent=f"{metadata} {data}", got=got)
                assert not told.tells(watched.secrets)


def called(answer: Any) -> str:
    """What comes, or the words of the refusal."""
    try:
        return str(list(answer))
    except grpc.RpcError as error:
        return str(error)


def test_what_one_has_cached_is_not_cached_for_another(watched: Watched) -> None:
    """Though it sends the very same, salt and all."""
    asked = body("/v1/completions", 5 * f"Once more: {WORDS}. ", cache_salt=SALT)
    found = []
    for tenant in (watched.victim, watched.victim, watched.spy):
        told = tenant.post("/v1/completions", asked).answer.json()
        found.append(sum(told["tokenway"]["cached_tokens"].values()))
        assert told["usage"]["prompt_tokens_details"]["cached_tokens"] == found[-1]
    assert found[1] > 0
    assert found[0] == found[2] == 0


def test_metrics_name_nobody_and_quote_nobody(watched: Watched) -> None:
    for path in (*ANSWERS, f"/v1/{MARK}"):
        headers = {"x_request_id": MARK, "user_agent": MARK, "anthropic_beta": MARK}
        watched.spy.post(path, body(path, MARK, user=MARK), **headers)
        watched.spy.post(path, body(path, MARK, MARK), x_api_key=MARK)
    private = (*watched.secrets, SPY, watched.spy.key[:11], SHARED, MARK)
    doors = [door for whose in SERVICES for door in watched.up.metrics(whose)]
    assert len(doors) == 3
    for door in doors:
        told = httpx.get(f"http://{door}/metrics").text
        assert "_total" in told
        assert not [word for word in private if word in told]


async def test_an_operator_who_asks_for_one_tenant_sees_no_row_of_another(
    watched: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where both used one request ID and one trace."""
    name = "request-of-both"
    for tenant in (watched.victim, watched.spy):
        tenant.post(MESSAGES, body(MESSAGES, "hi"), x_request_id=name, traceparent=parent(TRACE))

    def rows(*arguments: str) -> Any:
        found = main([*arguments, "--file", watched.file, "--json"]) == 0
        told = capsys.readouterr().out
        return json.loads(told) if found else []

    await until(lambda: len(rows("trace", name)) == 2)
    for own, other in ((VICTIM, SPY), (SPY, VICTIM)):
        (row,) = rows("trace", name, "--tenant", own)
        assert (row["tenant"], row["trace_id"]) == (own, TRACE)
        told = rows("usage", "--tenant", own)
        assert [one["tenant"] for one in told["usage"]] == [own]
        assert other not in str((row, told))
    assert rows("trace", watched.request_ids[1], "--tenant", SPY) == []


async def test_spans_of_a_shared_trace_hold_each_its_own_tenant(watched: Watched) -> None:
    shared = "fe" * 16
    names = {VICTIM: "span-of-acme", SPY: "span-of-globex"}
    for tenant in (watched.victim, watched.spy):
        asked, name = body(MESSAGES, f"{tenant.name} asks"), names[tenant.name]
        tenant.post(MESSAGES, asked, traceparent=parent(shared), x_request_id=name)
    collector = watched.collector
    await until(lambda: len(collector.all(shared, "engine.generate")) == 2)
    await until(lambda: len(collector.all(shared, "codec.request")) == 2)
    spans = {span.span_id: span for span in collector.all(shared)}
    for root in collector.all(shared, "codec.request"):
        own = {one.key: one.value.string_value for one in root.attributes}["tokenway.tenant"]
        (other,) = {VICTIM, SPY} - {own}
        told = str([span for span in spans.values() if root_of(span, spans) == root.span_id])
        assert names[own] in told
        assert not [word for word in (other, names[other]) if word in told]
    told = str([span for _, span in collector.spans])
    assert not [word for word in (*WORDS.split()[:3], SALT, watched.victim.key) if word in told]


def root_of(span: Span, spans: Mapping[bytes, Span]) -> bytes:
    """The span of the request that it is part of."""
    while span.parent_span_id in spans:
        span = spans[span.parent_span_id]
    return span.span_id
