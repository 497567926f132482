"""Blocks that nobody computed: planted in a store, under a shared key, or named by callers."""

from __future__ import annotations

import os
import pickle  # noqa: TID251  # the attack
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor
from tokenway.codec.v1 import codec_pb2
from tokenway.engine.v1 import engine_pb2
from tokenway.kv.v1 import kv_pb2
from tokenway.router.v1 import router_pb2
from tokenway.stream.v1 import stream_pb2
from tokenway.types.v1 import types_pb2

from services.engine.kv.record import BadRecord
from services.engine.kv.records import Records
from services.engine.kv.stores.lmdb_store import LmdbStore
from services.shared.addresses import next_address, root_address
from services.shared.mesh.rules import RULES
from services.shared.stream.events import CacheMiss
from services.shared.tls.identity import Role
from tests.engine.kv.shelf import Shelf, roomy

LAYOUT = "layout"
ROOT = root_address("model", LAYOUT, b"")


class Trap:
    """Leaves a folder where it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._folder),)


@pytest.mark.parametrize("protocol", [0, 2, pickle.HIGHEST_PROTOCOL])
def test_a_pickle_in_the_file_of_the_cache_is_a_damaged_record(
    tmp_path: Path, protocol: int
) -> None:
    opened, address = tmp_path / "opened", next_address(ROOT, [1, 2])
    store = LmdbStore(tmp_path / "kv", 4 * 2**20, LAYOUT, 600)
    records = Records(store, LAYOUT)
    try:
        store.put(address, pickle.dumps(Trap(opened), protocol))
        assert records.present([address]) == [True]
        with pytest.raises(BadRecord) as refusal:
            records.read(address)
        assert refusal.value.miss is CacheMiss.CHECKSUM
        assert records.present([address]) == [False]
        records.write(address, roomy(memoryview(b"k" * 64)))
        assert bytes(records.read(address) or b"") == b"k" * 64
    finally:
        records.close()
    assert not opened.exists()


class ShortKeys(Shelf):
    """A store whose keys are one byte of the address, so that many blocks share one."""

    def put(self, address: bytes, record: Any) -> None:
        super().put(address[:1], record)

    def get(self, address: bytes) -> Any:
        return super().get(address[:1])

    def present(self, addresses: Sequence[bytes]) -> list[bool]:
        return super().present([address[:1] for address in addresses])


def test_blocks_that_share_a_key_are_never_taken_for_each_other() -> None:
    records = Records(ShortKeys(), LAYOUT)
    addresses = [next_address(ROOT, [number]) for number in range(600)]
    for number, address in enumerate(addresses):
        records.write(address, roomy(memoryview(number.to_bytes(4, "little") * 16)))
    found = mistaken = 0
    for number, address in enumerate(addresses):
        try:
            read = records.read(address)
        except BadRecord:
            mistaken += 1
        else:
            assert bytes(read or b"") == number.to_bytes(4, "little") * 16
            found += 1
    assert found == len({address[:1] for address in addresses})
    assert mistaken == len(addresses) - found > 300


def test_addresses_are_long_and_told_apart_by_all_that_they_stand_for() -> None:
    roots = {
        root_address(model, layout, salt, tenant)
        for model in ("m", "ml")
        for layout in ("l", "")
        for salt in (b"", b"a", b"ab")
        for tenant in ("", "a", "b", "ab")
    }
    assert len(roots) == 2 * 2 * 3 * 4
    assert all(len(root) >= 16 for root in roots)


BYTES = FieldDescriptor.TYPE_BYTES
RAW = {
    "tokenway.kv.v1": "blocks of one engine for another",
    "tokenway.stream.v1.BlockEvents": "what an engine says that it has",
    "tokenway.types.v1.CacheControl.salt": "keeps blocks apart and names none",
}
"""Where the contracts hold raw bytes, and what they are."""


def fields(module: Any) -> list[Any]:
    pending = list(module.DESCRIPTOR.message_types_by_name.values())
    found: list[Any] = []
    while pending:
        message = pending.pop()
        pending += message.nested_types
        found += message.fields
    return found


def reachable(message: Any, seen: set[str]) -> set[str]:
    """Full names of all fields of a message and of those in it."""
    names = set()
    for field in message.fields:
        names.add(field.full_name)
        inner = field.message_type
        if inner is not None and inner.full_name not in seen:
            seen.add(inner.full_name)
            names |= reachable(inner, seen)
    return names


def test_a_generation_has_no_room_for_tensors_addresses_or_hashes() -> None:
    """Who asks for tokens says tokens; which blocks they are is found out by who has them."""
    asked = stream_pb2.GenerateRequest.DESCRIPTOR
    names = reachable(asked, set())
    raw = {
        field.full_name
        for module in (stream_pb2, types_pb2)
        for field in fields(module)
        if field.type == BYTES and field.full_name in names
    }
    assert raw == {"tokenway.types.v1.CacheControl.salt"}
    words = ("address", "hash", "block", "embed", "tensor", "digest", "path", "pickle")
    assert not [name for name in names if any(word in name.rpartition(".")[2] for word in words)]


def test_raw_bytes_are_where_they_must_be() -> None:
    modules = (stream_pb2, types_pb2, engine_pb2, router_pb2, codec_pb2, kv_pb2)
    raw = [field.full_name for one in modules for field in fields(one) if field.type == BYTES]
    assert all(name.startswith(tuple(RAW)) for name in raw), raw
    assert all(any(name.startswith(place) for name in raw) for place in RAW), raw


def test_who_may_name_blocks_is_an_engine() -> None:
    methods = {method: roles for method, roles in RULES.items() if "KvService" in method}
    assert len(methods) == len(kv_pb2.DESCRIPTOR.services_by_name["KvService"].methods)
    assert set(methods.values()) == {frozenset({Role.ENGINE})}
