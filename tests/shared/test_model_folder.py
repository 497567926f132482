"""A model folder is used whole or not at all, and the file at fault is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from services.shared.model_folder import MAX_JSON_BYTES, BadModelFolder, ModelFolder, sha256_of

FILES = {
    "config.json": '{"model_type": "llama"}',
    "tokenizer.json": '{"model": {}}',
    "chat_template.jinja": "{{ messages }}",
    "a.safetensors": "first shard",
    "b.safetensors": "second shard",
    "model.safetensors.index.json": json.dumps(
        {"weight_map": {"x": "b.safetensors", "y": "a.safetensors", "z": "a.safetensors"}}
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> ModelFolder:
    path = tmp_path / "small-model"
    path.mkdir()
    for name, text in FILES.items():
        (path / name).write_text(text)
    entries = {
        name: {"size": len(text), "sha256": sha256_of(path / name)} for name, text in FILES.items()
    }
    (path / "manifest.json").write_text(json.dumps({"files": entries}))
    return ModelFolder(path)


def rewrite(folder: ModelFolder, name: str, value: Any) -> None:
    (folder.path / name).write_text(value if isinstance(value, str) else json.dumps(value))


def test_a_whole_folder_passes_and_is_named_for_itself(folder: ModelFolder) -> None:
    folder.verify()
    assert folder.name == "small-model"
    assert [path.name for path in folder.weight_files()] == ["a.safetensors", "b.safetensors"]
    assert folder.json("config.json") == {"model_type": "llama"}


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(folder: ModelFolder, name: str) -> None:
    (folder.path / name).unlink()
    with pytest.raises(BadModelFolder, match=rf"{name} is missing$"):
        folder.verify()


@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_named_with_both_sizes(folder: ModelFolder, name: str) -> None:
    text = FILES[name]
    rewrite(folder, name, text[:-1])
    with pytest.raises(
        BadModelFolder, match=f"{name} must have {len(text)} bytes, has {len(text) - 1}$"
    ):
        folder.verify()


@pytest.mark.parametrize("name", FILES)
def test_a_file_with_another_content_is_named(folder: ModelFolder, name: str) -> None:
    rewrite(folder, name, FILES[name][:-1] + "?")
    with pytest.raises(BadModelFolder, match=f"{name} does not have the SHA-256"):
        folder.verify()


@pytest.mark.parametrize(
    "name", ["../outside", "/etc/passwd", "sub/../config.json", "sub/x", "..", ".", ""]
)
def test_names_that_leave_the_folder_are_refused_wherever_they_stand(
    folder: ModelFolder, name: str
) -> None:
    (folder.path / "sub").mkdir()
    (folder.path / "sub" / "x").write_text("x")
    (folder.path.parent / "outside").write_text("x")
    with pytest.raises(BadModelFolder, match="is missing"):
        folder.file(name)
    rewrite(folder, "model.safetensors.index.json", {"weight_map": {"x": name}})
    with pytest.raises(BadModelFolder, match="is missing"):
        folder.weight_files()
    rewrite(folder, "manifest.json", {"files": {name: {"size": 1, "sha256": "0" * 64}}})
    with pytest.raises(BadModelFolder, match="is missing"):
        folder.verify()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "config.json is not JSON"),
        ("", "config.json is not JSON"),
        ("[" * 100_000, "config.json is not JSON"),
        ("[]", "config.json must hold a JSON object"),
        ("null", "config.json must hold a JSON object"),
    ],
)
def test_a_file_that_is_no_json_object_is_named(folder: ModelFolder, text: str, said: str) -> None:
    rewrite(folder, "config.json", text)
    with pytest.raises(BadModelFolder, match=said):
        folder.json("config.json")


def test_bytes_that_are_no_utf8_are_no_json(folder: ModelFolder) -> None:
    (folder.path / "config.json").write_bytes(b'{"a": "\xff"}')
    with pytest.raises(BadModelFolder, match=r"config\.json is not JSON"):
        folder.json("config.json")


def test_a_json_file_beyond_the_limit_is_not_read(folder: ModelFolder) -> None:
    with (folder.path / "config.json").open("wb") as file:
        file.truncate(MAX_JSON_BYTES + 1)
    with pytest.raises(BadModelFolder, match=f"must be at most {MAX_JSON_BYTES} bytes, has"):
        folder.json("config.json")


@pytest.mark.parametrize("weight_map", [None, {}, [], "a.safetensors"])
def test_an_index_without_weights_is_named(folder: ModelFolder, weight_map: Any) -> None:
    rewrite(folder, "model.safetensors.index.json", {"weight_map": weight_map})
    with pytest.raises(BadModelFolder, match=r"index\.json has no weight_map$"):
        folder.weight_files()


@pytest.mark.parametrize(
    "files", [None, [], {"config.json": 1}, {"config.json": {"size": 1}}, {"config.json": {}}]
)
def test_a_manifest_that_lists_no_sizes_and_hashes_is_named(
    folder: ModelFolder, files: Any
) -> None:
    rewrite(folder, "manifest.json", {"files": files})
    with pytest.raises(BadModelFolder, match=r"manifest\.json must list size and sha256"):
        folder.verify()


def test_a_folder_without_index_has_one_weight_file(folder: ModelFolder) -> None:
    (folder.path / "model.safetensors.index.json").unlink()
    with pytest.raises(BadModelFolder, match=r"model\.safetensors is missing$"):
        folder.weight_files()
    rewrite(folder, "model.safetensors", "weights")
    assert [path.name for path in folder.weight_files()] == ["model.safetensors"]


def _same(folder: ModelFolder) -> tuple[str, str]:
    return folder.model_fingerprint(), folder.tokenizer_fingerprint()


@pytest.mark.parametrize(
    ("change", "model_changes", "tokenizer_changes"),
    [
        (lambda folder: rewrite(folder, "config.json", "{}"), True, False),
        (lambda folder: rewrite(folder, "a.safetensors", "other"), True, False),
        (lambda folder: rewrite(folder, "tokenizer.json", "{}"), False, True),
        (lambda folder: rewrite(folder, "chat_template.jinja", ""), False, True),
        (lambda folder: rewrite(folder, "tokenizer_config.json", "{}"), False, True),
        (lambda folder: rewrite(folder, "README.md", "words"), False, False),
    ],
)
def test_fingerprints_change_with_what_they_stand_for(
    folder: ModelFolder,
    change: Callable[[ModelFolder], None],
    model_changes: bool,
    tokenizer_changes: bool,
) -> None:
    with_manifest = folder.model_fingerprint()
    (folder.path / "manifest.json").unlink()
    before = _same(folder)
    assert before[0] == with_manifest
    change(folder)
    after = _same(folder)
    assert (before[0] != after[0], before[1] != after[1]) == (model_changes, tokenizer_changes)
