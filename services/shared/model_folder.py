"""A model in the layout of Hugging Face: its files, their checks and their fingerprints."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MANIFEST = "manifest.json"
CONFIG = "config.json"
TOKENIZER = "tokenizer.json"
TOKENIZER_CONFIG = "tokenizer_config.json"
CHAT_TEMPLATE = "chat_template.jinja"
WEIGHTS_INDEX = "model.safetensors.index.json"
WEIGHTS = "model.safetensors"

MAX_JSON_BYTES = 64 * 2**20


class BadModelFolder(Exception):
    """A file of a model folder is missing, truncated or not what the manifest says; it is named."""


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """A model's folder. `name` is what callers ask for: the folder's own name."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.resolve().name

    def file(self, name: str) -> Path:
        """Path of a file that must be there, directly in the folder."""
        path = self.path / name
        if Path(name).name != name or not path.is_file():
            raise BadModelFolder(f"{path} is missing")
        return path

    def has(self, name: str) -> bool:
        return (self.path / name).is_file()

    def json(self, name: str) -> dict[str, Any]:
        path = self.file(name)
        if path.stat().st_size > MAX_JSON_BYTES:
            raise BadModelFolder(
                f"{path} must be at most {MAX_JSON_BYTES} bytes, has {path.stat().st_size}"
            )
        try:
            value = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise BadModelFolder(f"{path} is not JSON: {error}") from error
        if not isinstance(value, dict):
            raise BadModelFolder(f"{path} must hold a JSON object")
        return value

    def weight_files(self) -> list[Path]:
        """The safetensors files, in the order of their names."""
        if not self.has(WEIGHTS_INDEX):
            return [self.file(WEIGHTS)]
        weight_map = self.json(WEIGHTS_INDEX).get("weight_map")
        if not isinstance(weight_map, dict) or not weight_map:
            raise BadModelFolder(f"{self.path / WEIGHTS_INDEX} has no weight_map")
        return [self.file(str(name)) for name in sorted(set(map(str, weight_map.values())))]

    def verify(self) -> None:
        """Compares each file that the manifest lists with its size and SHA-256.

        A folder without a manifest has nothing to compare with and passes.
        """
        if not self.has(MANIFEST):
            return
        for name, entry in self._manifest_files().items():
            path = self.file(name)
            size = path.stat().st_size
            if size != entry["size"]:
                raise BadModelFolder(f"{path} must have {entry['size']} bytes, has {size}")
            if sha256_of(path) != entry["sha256"]:
                raise BadModelFolder(f"{path} does not have the SHA-256 of {MANIFEST}")

    def tokenizer_fingerprint(self) -> str:
        """Digest of what decides prompt IDs: tokenizer and chat template; 64 hexadecimal digits."""
        digest = hashlib.sha256()
        for name in (TOKENIZER, TOKENIZER_CONFIG, CHAT_TEMPLATE):
            if self.has(name):
                digest.update(f"{name} {sha256_of(self.path / name)}\n".encode())
        return digest.hexdigest()

    def model_fingerprint(self) -> str:
        """Digest of what decides logits: configuration and weights; 64 hexadecimal digits.

        Weights count by the manifest's SHA-256, or by one computed here, which reads them whole.
        """
        known = self._manifest_files() if self.has(MANIFEST) else {}
        digest = hashlib.sha256()
        for path in [self.file(CONFIG), *self.weight_files()]:
            entry = known.get(path.name)
            digest.update(f"{path.name} {entry['sha256'] if entry else sha256_of(path)}\n".encode())
        return digest.hexdigest()

    def _manifest_files(self) -> dict[str, dict[str, Any]]:
        files = self.json(MANIFEST).get("files")
        if not isinstance(files, dict) or not all(
            isinstance(entry, dict) and {"size", "sha256"} <= entry.keys()
            for entry in files.values()
        ):
            raise BadModelFolder(f"{self.path / MANIFEST} must list size and sha256 of each file")
        return files


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
