"""An engine is what its settings say."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.engine.assembly import SERVICES, assembled
from services.engine.kv.cache_settings import CacheSettings, Sharing
from services.engine.settings import EngineSettings, ExecutorSettings, Role
from services.shared.stream.generation import Generation, QualityOfService
from services.shared.tls.way import CLEAR
from tests.engine.harness import simulated


def settings(role: Role = Role.BOTH, sharing: Sharing = Sharing.TENANT) -> EngineSettings:
    executor = ExecutorSettings(model_path=Path(), role=role)
    return EngineSettings(executor=executor, cache=CacheSettings(sharing=sharing))


@pytest.mark.parametrize("role", Role)
async def test_the_role_is_told(role: Role) -> None:
    async with assembled(simulated(), settings(role), CLEAR) as assembly:
        assert assembly.identity.role is role


@pytest.mark.parametrize("sharing", Sharing)
async def test_tenants_share_their_blocks_where_it_is_told_and_only_there(
    sharing: Sharing,
) -> None:
    async with assembled(simulated(), settings(sharing=sharing), CLEAR) as assembly:
        roots = {
            assembly.engine._admission.admit(
                Generation(
                    request_id="r",
                    prompt_ids=[5],
                    quality_of_service=QualityOfService(tenant=tenant),
                )
            ).root
            for tenant in ("a", "b", None)
        }
        assert assembly.identity.shares_blocks is (len(roots) == 1)
        assert assembly.identity.shares_blocks is (sharing is Sharing.GLOBAL)


def test_all_services_are_named_for_health_and_reflection() -> None:
    assert SERVICES == (
        "tokenway.stream.v1.TokenStreamService",
        "tokenway.engine.v1.EngineService",
        "tokenway.kv.v1.KvService",
    )
