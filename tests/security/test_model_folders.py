"""Model folders from anywhere: pickles, code and templates that would do more than write text."""

from __future__ import annotations

import json
import os
import pickle  # noqa: TID251  # the attack
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from services.codec.conversation import Conversation, Role, Text, Turn
from services.codec.prompt import PromptEncoder
from services.engine.model.config import read_config
from services.engine.model.weights import PICKLES, read_weights
from services.shared.errors import InvalidRequest
from services.shared.model_folder import CONFIG, WEIGHTS, BadModelFolder, ModelFolder
from tests.codec.small_model import CONCATENATED, ROLES, added, byte_level, write
from tests.codec.test_sandbox import BOMBS, ESCAPES
from tests.engine.model.tiny_folder import write_config, write_folder

OPENED = "opened"
SPOKEN = "rosebud"


class Trap:
    """Leaves a folder where it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self._folder / OPENED),)


@pytest.mark.parametrize("suffix", PICKLES)
def test_weights_that_are_pickles_are_refused_by_name_and_never_opened(
    tmp_path: Path, suffix: str
) -> None:
    folder = write_config(tmp_path)
    path = tmp_path / f"pytorch_model{suffix}"
    path.write_bytes(pickle.dumps(Trap(tmp_path)))
    with pytest.raises(BadModelFolder) as refusal:
        read_weights(folder, read_config(folder))
    assert str(path) in str(refusal.value)
    assert "safetensors" in str(refusal.value)
    assert not (tmp_path / OPENED).exists()


def test_a_pickle_under_the_name_of_weights_is_refused_and_never_opened(tmp_path: Path) -> None:
    folder = write_config(tmp_path)
    (tmp_path / WEIGHTS).write_bytes(pickle.dumps(Trap(tmp_path)))
    with pytest.raises(BadModelFolder):
        read_weights(folder, read_config(folder))
    assert not (tmp_path / OPENED).exists()


def test_code_that_a_folder_names_is_not_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = write_folder(tmp_path, auto_map={"AutoConfig": "configuration_x.Config"})
    code = f"import os; os.mkdir({str(tmp_path / OPENED)!r})\nclass Config: pass\n"
    for name in ("configuration_x.py", "modeling_x.py", "__init__.py"):
        (tmp_path / name).write_text(code)
    assert read_weights(folder, read_config(folder))
    assert not (tmp_path / OPENED).exists()
    assert "auto_map is ignored" in caplog.text


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    tokenizer = byte_level()
    tokenizer.add_special_tokens(added(ROLES))
    return tokenizer


def loaded(path: Path, tokenizer: Tokenizer, template: str) -> PromptEncoder:
    return PromptEncoder(write(path, tokenizer, template=template), cache_bytes=0)


def asked(encoder: PromptEncoder) -> str:
    return encoder.render(Conversation((Turn(Role.USER, (Text(SPOKEN),)),)))


@pytest.mark.parametrize("escape", ESCAPES)
@pytest.mark.parametrize("place", ["for everybody", "for one text"])
def test_a_template_that_looks_beyond_its_sandbox_finds_nothing(
    tmp_path: Path, tokenizer: Tokenizer, escape: str, place: str
) -> None:
    """It is refused as the folder is loaded or as it is rendered, or it writes what it may."""
    hidden = f"{{% if messages[0].content == {SPOKEN!r} %}}{escape}{{% endif %}}"
    template = CONCATENATED + (escape if place == "for everybody" else hidden)
    try:
        rendered = asked(loaded(tmp_path, tokenizer, template))
    except (BadModelFolder, InvalidRequest):
        return
    beyond = rendered.partition("<|assistant|>\n")[2]
    assert len(beyond) < 100
    assert not any(word in beyond for word in ("class", "object at", "function", "root:", "uid="))


@pytest.mark.parametrize("bomb", BOMBS[::3])
def test_a_folder_whose_template_never_ends_is_refused(
    tmp_path: Path, tokenizer: Tokenizer, bomb: str
) -> None:
    """By a count of its work: as early on a slow machine as on a fast one."""
    with pytest.raises(BadModelFolder, match="render a single message"):
        loaded(tmp_path, tokenizer, CONCATENATED + bomb)


def test_a_template_in_a_configuration_has_the_same_bounds(
    tmp_path: Path, tokenizer: Tokenizer
) -> None:
    folder = write(tmp_path, tokenizer, config={"chat_template": CONCATENATED + BOMBS[0]})
    (tmp_path / "chat_template.jinja").unlink()
    with pytest.raises(BadModelFolder, match="render a single message"):
        PromptEncoder(folder, cache_bytes=0)


@pytest.mark.parametrize("depth", [10_000, 1_000_000])
def test_a_configuration_that_is_deep_is_no_json(tmp_path: Path, depth: int) -> None:
    (tmp_path / CONFIG).write_text(json.dumps({"a": 1})[:-1] + ', "b":' + "[" * depth)
    with pytest.raises(BadModelFolder, match=CONFIG):
        read_config(ModelFolder(tmp_path))
