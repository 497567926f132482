"""What the codec's tests share: one loaded tokenizer."""

from __future__ import annotations

import pytest

from services.codec.prompt import PromptEncoder
from services.shared.model_folder import ModelFolder
from tests.codec_bed import BedMaker


@pytest.fixture(scope="session")
def beds(model_folder: ModelFolder) -> BedMaker:
    encoder = PromptEncoder(model_folder, cache_bytes=16 * 2**20)
    return BedMaker(folder=model_folder, encoder=encoder)
