"""Buffers within a bound, which are there at once."""

from __future__ import annotations

import services.engine.kv.ready_memory as subject
from services.engine.kv.ready_memory import ReadyMemory
from tests.waiting import until

SIZE = 2**20


def taken(memory: ReadyMemory) -> list[memoryview]:
    """As many as are ready now."""
    buffers: list[memoryview] = []
    while (buffer := memory.take()) is not None:
        buffers.append(buffer)
    return buffers


async def test_there_are_as_many_as_fit_and_no_more() -> None:
    memory = ReadyMemory(10 * SIZE - 1, SIZE)
    buffers = taken(memory)
    assert [len(buffer) for buffer in buffers] == [SIZE] * 9
    assert memory.take() is None
    memory.give_back(buffers[0])
    assert memory.take() is buffers[0]
    memory.close()


async def test_more_are_made_while_some_are_used() -> None:
    ahead = subject.AHEAD_BYTES // SIZE
    memory = ReadyMemory(3 * ahead * SIZE, SIZE)
    buffers = taken(memory)

    def all_taken() -> bool:
        buffers.extend(taken(memory))
        return len(buffers) == 3 * ahead

    await until(all_taken)
    assert memory.take() is None
    memory.close()
    buffers[0][:4] = b"abcd"
    assert buffers[1][:4] == bytes(4)
