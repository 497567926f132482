"""Mooncake's TransferEngine as the transport, over TCP; where it is missing, it is refused."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from services.engine.kv.cache_settings import PeerSettings, Transport
from services.engine.kv.mooncake import staging_of
from services.engine.kv.mooncake_settings import MooncakeSettings
from services.shared.byte_size import ByteSize
from services.shared.config import BadConfig
from tests.engine.kv.borrower import borrowing
from tests.engine.kv.lender import lent
from tests.engine.kv.plain_memory import PlainMemory
from tests.engine.kv.test_servicer import contents

SIZE = 737_280
RULES = PeerSettings(
    transport=Transport.MOONCAKE, mooncake=MooncakeSettings(staging_bytes=ByteSize(8 * SIZE))
)
IS_INSTALLED = find_spec("mooncake") is not None


@pytest.mark.skipif(not IS_INSTALLED, reason="mooncake-transfer-engine is not installed")
async def test_blocks_are_read_from_the_memory_of_another_engine() -> None:
    blocks = contents(20, SIZE)
    shelf, room = staging_of(RULES, SIZE), staging_of(RULES, SIZE)
    assert shelf is not None
    assert room is not None
    async with (
        lent(PlainMemory(20, SIZE), blocks=20, staging=shelf) as lender,
        borrowing(SIZE, staging=room) as borrower,
    ):
        await lender.publish(blocks)
        copied = lender.memory
        assert await borrower.fetched(list(blocks), lender.address) == (
            list(blocks.values()),
            None,
        )
        assert isinstance(copied, PlainMemory)
        assert copied.copied == 20, "each block is copied once, and none is streamed"
        assert shelf.free == 8


@pytest.mark.skipif(not IS_INSTALLED, reason="mooncake-transfer-engine is not installed")
def test_what_nobody_lends_is_not_read() -> None:
    staging = staging_of(RULES, SIZE)
    assert staging is not None
    (into,) = staging.offsets([0])
    transport = staging.transport
    assert not transport.read(transport.session, 4096, into, SIZE), "not our memory's"
    assert not transport.read("127.0.0.1:1", into, into, SIZE), "nobody there"


@pytest.mark.skipif(IS_INSTALLED, reason="mooncake-transfer-engine is installed")
def test_without_the_package_the_setting_is_refused_with_the_remedy() -> None:
    with pytest.raises(BadConfig, match=r"pip install tokenway\[rdma\]"):
        staging_of(RULES, SIZE)


def test_a_stream_needs_no_such_memory() -> None:
    assert staging_of(PeerSettings(), SIZE) is None


def test_memory_without_room_for_a_block_is_refused() -> None:
    with pytest.raises(BadConfig, match=f"must be >= {10 * SIZE}, a block's bytes, got {8 * SIZE}"):
        staging_of(RULES, 10 * SIZE)


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.5", "engine-1"])  # noqa: S104  # refused
def test_a_host_beyond_loopback_needs_a_word(host: str) -> None:
    with pytest.raises(ValueError, match=r"mooncake\.host must be a loopback address unless"):
        MooncakeSettings(host=host)
    assert MooncakeSettings(host=host, unprotected=True).host == host


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_loopback_needs_none(host: str) -> None:
    assert MooncakeSettings(host=host).host == host
