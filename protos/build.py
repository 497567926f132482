"""Lints the contracts and generates stubs/; with --check it only tells whether they are current."""

from __future__ import annotations

import argparse
import filecmp
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent
PROJECT = ROOT.parent
STUBS = PROJECT / "stubs"
SITE = Path(sysconfig.get_path("purelib"))
BIN = Path(sys.executable).parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true")
    check = parser.parse_args().check
    lint()
    with tempfile.TemporaryDirectory() as folder:
        generate(Path(folder))
        if check:
            verify(Path(folder))
        else:
            shutil.rmtree(STUBS, ignore_errors=True)
            shutil.copytree(folder, STUBS)


def lint() -> None:
    buf = str(BIN / "buf")
    subprocess.run([buf, "format", "--diff", "--exit-code", str(ROOT)], cwd=PROJECT, check=True)
    with tempfile.NamedTemporaryFile(suffix=".binpb") as image:
        compile_protos(
            "--include_imports", "--include_source_info", f"--descriptor_set_out={image.name}"
        )
        subprocess.run(
            [buf, "lint", image.name, "--config", "buf.yaml", "--exclude-path", "google"],
            cwd=PROJECT,
            check=True,
        )


def generate(out: Path) -> None:
    compile_protos(
        f"--python_out={out}",
        f"--grpc_python_out={out}",
        f"--mypy_out={out}",
        f"--mypy_grpc_out=only_async:{out}",
    )


def compile_protos(*options: str) -> None:
    includes = [f"-I{ROOT}", f"-I{SITE}", f"-I{SITE / 'grpc_tools' / '_proto'}"]
    plugins = [
        f"--plugin=protoc-gen-{name}={BIN / f'protoc-gen-{name}'}" for name in ("mypy", "mypy_grpc")
    ]
    sources = [str(path) for path in sorted(ROOT.rglob("*.proto"))]
    if protoc.main(["protoc", *includes, *plugins, *options, *sources]) != 0:
        sys.exit("protoc failed")


def verify(fresh: Path) -> None:
    names = {
        path.relative_to(folder)
        for folder in (fresh, STUBS)
        for path in folder.rglob("*.py*")
        if "__pycache__" not in path.parts
    }
    stale = sorted(
        str(name)
        for name in names
        if not (fresh / name).exists()
        or not (STUBS / name).exists()
        or not filecmp.cmp(fresh / name, STUBS / name, shallow=False)
    )
    if stale:
        sys.exit(f"stubs are not what protos say; run make protos: {', '.join(stale)}")


if __name__ == "__main__":
    main()
