"""Several nodes are asked at once, and one that hangs keeps nobody."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest

from services.engine.kv.store import Store, StoreFailed, StoreTimeout
from services.engine.kv.stores.lmdb_store import LmdbStore
from services.engine.kv.stores.node_crews import NodeCrews
from tests.engine.kv.stores.bed import LAYOUT, failure


@pytest.fixture
def crews(tmp_path: Path) -> Iterator[NodeCrews]:
    nodes = [LmdbStore(tmp_path / str(index), 2**22, LAYOUT, ttl_s=600) for index in range(3)]
    made = NodeCrews(nodes, threads=2, timeout_s=0.2)
    yield made
    made.close()


def test_each_node_is_asked_once(crews: NodeCrews) -> None:
    answers = dict(crews.ask_all(lambda index, node: (index, node)))
    assert answers == {index: (index, node) for index, node in enumerate(crews.nodes)}


def test_a_failure_is_an_answer_of_its_node(crews: NodeCrews) -> None:
    def act(index: int, _: Store) -> int:
        if index == 1:
            raise StoreFailed("dead")
        return index

    answers = dict(crews.ask_all(act))
    assert (answers[0], str(answers[1]), answers[2]) == (0, "dead", 2)


def test_a_node_that_hangs_is_late_and_the_others_are_not(crews: NodeCrews) -> None:
    free = Event()
    for _ in range(5):
        answers = dict(crews.ask_all(lambda index, _: free.wait() if index == 2 else True))
        assert (answers[0], answers[1]) == (True, True)
        assert isinstance(answers[2], StoreTimeout)
    free.set()


def test_who_has_enough_waits_for_no_more(crews: NodeCrews) -> None:
    free = Event()
    asked = crews.ask_all(lambda index, _: free.wait() if index == 2 else True)
    assert {next(asked)[0], next(asked)[0]} == {0, 1}
    asked.close()
    free.set()


def test_nothing_is_asked_after_the_end(crews: NodeCrews) -> None:
    crews.close()
    assert "closed" in str(failure(lambda: list(crews.ask_all(lambda index, _: index))))
