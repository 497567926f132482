"""Connections to peers are shared, kept for a while, and closed."""

from __future__ import annotations

import grpc

from services.engine.kv.peer_channels import PeerChannels
from services.shared.tls.way import CLEAR
from tests.waiting import until


def is_closed(channel: grpc.aio.Channel) -> bool:
    return channel.get_state() is grpc.ChannelConnectivity.SHUTDOWN


async def test_fetches_from_one_peer_share_a_channel() -> None:
    channels = PeerChannels(CLEAR)
    here, there = "127.0.0.1:1", "127.0.0.1:2"
    with channels.to(here) as one, channels.to(here) as same, channels.to(there) as other:
        assert one is same is not other
    await channels.close()


async def test_a_channel_that_nobody_uses_is_kept_for_the_next_and_then_closed() -> None:
    channels = PeerChannels(CLEAR, idle_s=60)
    with channels.to("127.0.0.1:1") as first:
        pass
    with channels.to("127.0.0.1:1") as second:
        assert first is second
    await channels.close()
    assert is_closed(first)
    hasty = PeerChannels(CLEAR, idle_s=0)
    with hasty.to("127.0.0.1:1") as channel:
        pass
    await until(lambda: not len(hasty))
    await until(lambda: is_closed(channel))
    await hasty.close()


async def test_a_channel_in_use_is_not_closed() -> None:
    channels = PeerChannels(CLEAR, idle_s=0)
    with channels.to("127.0.0.1:1") as one:
        with channels.to("127.0.0.1:1"):
            pass
        with channels.to("127.0.0.1:2"):
            pass
        await until(lambda: len(channels) == 1)
        assert not is_closed(one)
    await channels.close()


async def test_a_use_that_goes_on_after_the_end_keeps_nothing() -> None:
    channels = PeerChannels(CLEAR, idle_s=0)
    with channels.to("127.0.0.1:1") as channel:
        await channels.close()
        assert is_closed(channel)
    assert len(channels) == 0


class ChangingWay:
    """Another version when a test says so."""

    def __init__(self) -> None:
        self.version = 0

    def dial(self, address: str) -> grpc.aio.Channel:
        return CLEAR.dial(address)

    async def worn(self, version: int) -> None:
        raise NotImplementedError


async def test_after_other_certificates_who_is_new_gets_another_channel() -> None:
    way = ChangingWay()
    channels = PeerChannels(way)
    peer = "127.0.0.1:1"
    with channels.to(peer) as old:
        way.version += 1
        with channels.to(peer) as new, channels.to(peer) as same:
            assert old is not new is same
        assert not is_closed(old)
    await until(lambda: is_closed(old))
    assert not is_closed(new)
    way.version += 1
    with channels.to(peer) as newest:
        await until(lambda: is_closed(new))
        assert newest is not new
        with channels.to(peer):
            way.version += 1
        with channels.to(peer):
            await channels.close()
            assert is_closed(newest)
