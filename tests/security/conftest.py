"""A codec with keys, for tests that ask what it lets in."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from services.codec.output.families import HERMES
from services.codec.prompt import PromptEncoder
from services.shared.model_folder import ModelFolder
from tests.codec_bed import BedMaker
from tests.security.guarded import Guarded, guarded_by


@pytest.fixture(scope="session")
def beds(model_folder: ModelFolder) -> BedMaker:
    encoder = PromptEncoder(model_folder, cache_bytes=0, family=HERMES)
    return BedMaker(folder=model_folder, encoder=encoder)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def guarded(
    beds: BedMaker, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Guarded]:
    """One codec for the tests of a module that change nothing of it."""
    async with guarded_by(beds, tmp_path_factory.mktemp("keys") / "keys.json") as guarded:
        yield guarded
