"""The tiers together: the nearest first, the switch over the far ones, and their end."""

from __future__ import annotations

import threading
from pathlib import Path

from services.engine.kv.cache_settings import CacheSettings, CacheType, EmbeddedSettings
from services.engine.kv.figures import TierFigures
from services.engine.kv.tier import Tier
from services.shared.byte_size import ByteSize
from services.shared.stream.events import CachedTokens
from tests.engine.asked import Asked, ask
from tests.engine.harness import simulated
from tests.engine.kv.test_filling import generation, outputs
from tests.engine.served import Served, served
from tests.waiting import until

BLOCK_BYTES = 16


def cache(folder: Path, host_blocks: int = 0) -> CacheSettings:
    return CacheSettings(
        type=CacheType.EMBEDDED,
        embedded=EmbeddedSettings(path=folder / "kv"),
        host_bytes=ByteSize(host_blocks * BLOCK_BYTES),
    )


async def told(subject: Served, *, peer: Served | None = None, prompt: int = 42) -> Asked:
    wanted = generation(prompt=prompt, peer=None if peer is None else peer.address)
    one = ask(subject.engine, wanted)
    await one.finished()
    assert [one.ids] == outputs(wanted)
    return one


async def forgotten(subject: Served, *, host: bool = True) -> None:
    await subject.engine.flush_cache()
    if host:
        subject.caches.flush_host()


async def displaced(subject: Served) -> None:
    """The pool has given up everything to host memory."""
    for number in (100, 110, 120):
        await ask(subject.engine, generation(number, prompt=60)).finished()


def written(subject: Served) -> TierFigures:
    return subject.caches.figures[Tier.SERVICE]


async def test_each_tier_is_asked_for_what_nearer_ones_have_not_got(tmp_path: Path) -> None:
    async with (
        served(simulated(blocks=400), cache=CacheSettings()) as lender,
        served(simulated(blocks=20), cache=cache(tmp_path, host_blocks=400)) as subject,
    ):
        first = await told(subject, prompt=22)
        await until(lambda: written(subject).written_blocks >= 5)
        await displaced(subject)
        await told(lender, prompt=34)
        second = await told(subject, peer=lender)
        await forgotten(subject)
        await until(lambda: written(subject).written_blocks >= 10)
        third = await told(subject)
    assert first.accepted.cached_tokens == CachedTokens()
    assert second.accepted.cached_tokens == CachedTokens(host=20, peer=12)
    assert third.accepted.cached_tokens.service >= 20


async def test_off_only_what_is_its_own_is_used(tmp_path: Path) -> None:
    async with (
        served(simulated(blocks=400)) as lender,
        served(simulated(blocks=20), cache=cache(tmp_path, host_blocks=400)) as subject,
    ):
        await told(lender)
        await told(subject, prompt=22)
        await displaced(subject)
        assert subject.engine.load().fetches_blocks
        await subject.caches.set(enabled=False)
        assert not subject.engine.load().fetches_blocks
        off = await told(subject, peer=lender)
    assert off.accepted.cached_tokens == CachedTokens(host=20)


def threads() -> set[str]:
    """Kinds of threads that move blocks."""
    names = {thread.name for thread in threading.enumerate()}
    kinds = ("kv-copy", "host-memory", "cache-read", "cache-copy", "cache-write")
    return {kind for kind in kinds for name in names if name.startswith(kind)}


async def test_their_threads_end_with_them(tmp_path: Path) -> None:
    async with served(simulated(blocks=20), cache=cache(tmp_path, host_blocks=10)) as subject:
        await told(subject)
        await displaced(subject)
        await told(subject)
        assert threads() >= {"kv-copy", "cache-read", "cache-copy", "cache-write"}
    assert not threads()
