"""The settings page lists what the services know, with the defaults they have."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from services.codec.settings import CodecSettings
from services.engine.settings import EngineSettings
from services.router.settings import RouterSettings
from services.shared.config_tree import keys

PAGE = (Path(__file__).parents[2] / "docs/settings.md").read_text()


def listed(section: str) -> set[str]:
    """The keys of one section's table and of the one for all services."""
    parts = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    texts = [part for part in parts if part.startswith((section, "All services"))]
    return {key for text in texts for key in re.findall(r"^\| \**`([a-z_.]+)`", text, re.MULTILINE)}


@pytest.mark.parametrize(
    ("section", "settings"),
    [("Codec", CodecSettings), ("Router", RouterSettings), ("Engine", EngineSettings)],
)
def test_the_page_lists_every_setting_and_no_other(section: str, settings: type) -> None:
    assert listed(section) == keys(settings)


GUIDE_KEYS = """
server.port inference_engine.endpoint inference_engine.protocol cache.type
service.batching.max_batch_size service.batching.max_wait_ms service.limits.max_concurrency
service.limits.request_timeout_ms executor.accelerator_group executor.model_path
executor.memory.reserve_ratio executor.memory.deterministic_gc health.liveness_path
health.readiness_path health.initial_delay_seconds
"""


@pytest.mark.parametrize("key", GUIDE_KEYS.split())
def test_each_key_of_the_deployment_guides_belongs_to_a_service(key: str) -> None:
    assert any(key in keys(cls) for cls in (CodecSettings, RouterSettings, EngineSettings))
