"""What trust costs: tokens a second with all that watches and guards a stack, over without.

Two stacks of the real model run beside each other, and 32 streams go through each in turn. With:
mutual TLS on every hop, API keys, limits of the tenant, spans to a collector, metrics that are
scraped each second, a request log, audit files. Without: none of these. Of some pairs of rounds
the median ratio counts.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import statistics
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx

from bench.ratio import Ratio
from bench.service_process import ROOT, service_process
from services.launcher.certs_command import main as certs
from services.launcher.dev_key import KEY, KEYS, TENANT, make_dev_key
from tests.integration.span_collector import collecting

STREAMS = 32
OUTPUT_TOKENS = 48
AIM = ">= 0.95"
ROLES = ("engine", "router", "codec")

_USED = re.compile(rb'"completion_tokens": ?(\d+)')


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """A stack as its callers know it.

    Args:
        codec: `host:port` of HTTP.
        key: what callers show; none where nobody asks.
        metrics: doors that are scraped.
    """

    codec: str
    key: str = ""
    metrics: tuple[str, ...] = ()


@contextmanager
def stack(model: Path, trusted: Mapping[str, Mapping[str, Any]] | None) -> Iterator[Way]:
    """Args: trusted: settings of each service besides; None for a stack without any of it."""
    added = trusted or {role: {"security": {"mtls": False}} for role in ROLES}
    free = {"server": {"port": 0}}
    executor = {"model_path": str(model)}
    with ExitStack() as running:

        def start(role: str, settings: Mapping[str, Any]) -> Mapping[str, str]:
            both = {**settings, **added[role]}
            return running.enter_context(service_process(f"services.{role}", both)).doors

        engine = start("engine", {**free, "executor": executor})
        router = start("router", {**free, "replicas": [engine["grpc"]]})
        codec = start(
            "codec",
            {
                "server": {"port": 0, "grpc_port": 0},
                "executor": executor,
                "inference_engine": {"endpoint": router["grpc"]},
            },
        )
        while httpx.get(f"http://{codec['http']}/readyz").status_code != HTTPStatus.OK:
            sleep(0.1)
        metrics = (doors["metrics"] for doors in (engine, router, codec) if "metrics" in doors)
        yield Way(codec=codec["http"], metrics=tuple(metrics))


def trust(folder: Path, collector: str) -> dict[str, dict[str, Any]]:
    """The settings of each service with everything on; files lie in `folder`."""
    authority = folder / "ca"
    certs(["init", str(authority)])
    make_dev_key(folder)
    tenants = folder / "tenants.yaml"
    limits = {"tenant": TENANT, "tokens_per_minute": 10**9, "requests_per_minute": 10**9}
    tenants.write_text(json.dumps({"tenants": [limits]}))
    settings: dict[str, dict[str, Any]] = {}
    for role in ROLES:
        own = folder / role
        certs(["issue", role, role, "--ca", str(authority), "--to", str(own)])
        settings[role] = {
            "security": {"certificates": str(own), "audit_file": str(folder / f"{role}.audit")},
            "metrics": {"port": 0},
            "telemetry": {"otlp_endpoint": collector, "log_level": "warning"},
        }
    callers = {"keys_file": str(folder / KEYS), "tenants_file": str(tenants)}
    settings["codec"]["security"] |= callers
    settings["codec"]["request_log"] = {"url": f"sqlite:///{folder / 'requests.db'}"}
    return settings


async def tokens_per_s(way: Way, seconds: float, first: int) -> float:
    """Of all streams together, until `seconds` are over; what had begun then counts in part."""
    began = monotonic()
    tokens = 0

    async def client(number: int) -> None:
        nonlocal tokens
        while monotonic() - began < seconds:
            told = await _answer(way, number)
            tokens += told
            number += STREAMS

    scraping = asyncio.create_task(_scrape(way.metrics))
    await asyncio.gather(*(client(first + number) for number in range(STREAMS)))
    scraping.cancel()
    with suppress(asyncio.CancelledError):
        await scraping
    return tokens / (monotonic() - began)


async def _answer(way: Way, number: int) -> int:
    """The tokens of one streamed answer."""
    body = json.dumps(
        {
            "model": "smollm2-135m-instruct",
            "messages": [{"role": "user", "content": f"Tell me about the number {number}."}],
            "max_tokens": OUTPUT_TOKENS,
            "ignore_eos": True,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
    ).encode()
    host, _, port = way.codec.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nhost: codec\r\nconnection: close\r\n"
        + (f"authorization: Bearer {way.key}\r\n".encode() if way.key else b"")
        + b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(body)
        + body
    )
    answer = await reader.read(-1)
    writer.close()
    await writer.wait_closed()
    used = _USED.findall(answer)
    if not used or int(used[-1]) != OUTPUT_TOKENS or b"[DONE]" not in answer:
        raise RuntimeError(f"no whole answer: {answer[:300]!r}{answer[-500:]!r}")
    return int(used[-1])


async def _scrape(doors: tuple[str, ...]) -> None:
    while doors:
        for door in doors:
            host, _, port = door.rpartition(":")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(b"GET /metrics HTTP/1.1\r\nhost: m\r\n\r\n")
            await reader.read(-1)
            writer.close()
            await writer.wait_closed()
        await asyncio.sleep(1)


async def compared(on: Way, off: Way, rounds: int, seconds: float) -> list[float]:
    """Ratios of rounds, of which each goes before the other in turn."""
    ratios, asked = [], 0
    for number in range(rounds + 1):
        told = {}
        for way in (on, off) if number % 2 else (off, on):
            told[way] = await tokens_per_s(way, seconds, asked)
            asked += 100_000
        if number:  # the first warms up
            ratios.append(told[on] / told[off])
            print(f"with {told[on]:.0f} tokens/s, without {told[off]:.0f}", flush=True)
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, default=ROOT / ".cache/models/smollm2-135m-instruct")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--seconds", type=float, default=10.0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, collecting() as (collector, endpoint):
        folder = Path(name)
        with (
            stack(options.model, trust(folder, endpoint)) as on,
            stack(options.model, None) as off,
        ):
            key = (folder / KEY).read_text().strip()
            trusted = Way(codec=on.codec, metrics=on.metrics, key=key)
            ratios = asyncio.run(compared(trusted, off, options.rounds, options.seconds))
        print(f"{len(collector.spans)} spans arrived")
    print(Ratio(name="trust_cost", value=statistics.median(ratios), aim=AIM))


if __name__ == "__main__":
    main()
