"""What the codec's tests share: one loaded tokenizer."""

from __future__ import annotations

import pytest

from services.codec.output.families import HERMES
from services.codec.prompt import PromptEncoder
from services.shared.model_folder import ModelFolder
from tests.codec_bed import BedMaker


@pytest.fixture(scope="session")
def beds(model_folder: ModelFolder) -> BedMaker:
    encoder = PromptEncoder(model_folder, cache_bytes=16 * 2**20)
    return BedMaker(folder=model_folder, encoder=encoder)


@pytest.fixture(scope="session")
def thinkers(model_folder: ModelFolder) -> BedMaker:
    """Beds whose model writes as Hermes does: it thinks aloud, and calls one after the other."""
    encoder = PromptEncoder(model_folder, cache_bytes=16 * 2**20, family=HERMES)
    return BedMaker(folder=model_folder, encoder=encoder)
