"""A store for all tests here; each has keys of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.redis_server import RedisServer, redis_server
from tests.shared.access.shared_quotas.sharing import Commons


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    with redis_server(tmp_path_factory.mktemp("redis")) as running:
        yield running


@pytest.fixture
def commons(server: RedisServer, request: pytest.FixtureRequest) -> Commons:
    name = "".join(char if char.isalnum() else "-" for char in request.node.name)
    return Commons(server=server, prefix=name[:64])
