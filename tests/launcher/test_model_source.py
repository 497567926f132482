from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from services.launcher import model_source
from services.launcher.bad_model_file import BadModelFile
from services.launcher.model_source import open_gguf

CONTENT = b"GGUF" * 20


def wheel_of(tmp_path: Path, members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> Path:
    path = tmp_path / "tiny-1-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return path


def read(source: Path) -> bytes:
    with open_gguf(source, source.parent) as file:
        file.seek(0)
        return file.read()


def refused(source: Path) -> str:
    with pytest.raises(BadModelFile) as caught:
        read(source)
    return str(caught.value)


@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_gguf_comes_out_of_a_wheel(method: int, tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, {"a/m.gguf": CONTENT, "a/__init__.py": b""}, method)
    assert read(wheel) == CONTENT
    assert list(tmp_path.iterdir()) == [wheel]


def test_gguf_comes_out_of_the_folder_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "m.gguf").write_bytes(CONTENT)
    (tmp_path / "__init__.py").touch()
    assert read(tmp_path) == CONTENT
    assert read(tmp_path / "m.gguf") == CONTENT


def test_source_must_hold_one_gguf(tmp_path: Path) -> None:
    assert "must hold one .gguf file, holds 0" in refused(tmp_path)
    none = wheel_of(tmp_path, {"a/__init__.py": b""})
    assert "must hold one .gguf file, holds 0" in refused(none)
    two = wheel_of(tmp_path, {"a/1.gguf": b"", "a/2.gguf": b""})
    assert "must hold one .gguf file, holds 2" in refused(two)


def test_missing_source_is_refused(tmp_path: Path) -> None:
    assert "gone.whl is not there" in refused(tmp_path / "gone.whl")


def test_member_that_expands_without_measure_is_refused(tmp_path: Path) -> None:
    bomb = wheel_of(tmp_path, {"a/m.gguf": bytes(10_000_000)}, zipfile.ZIP_DEFLATED)
    message = refused(bomb)
    assert "must have at most" in message
    assert "declares 10000000" in message


def test_member_that_declares_less_than_it_holds_is_refused(tmp_path: Path) -> None:
    wheel = wheel_of(tmp_path, {"a/m.gguf": bytes(10_000_000)}, zipfile.ZIP_DEFLATED)
    lie = wheel.read_bytes().replace((10_000_000).to_bytes(4, "little"), b"\x50\0\0\0")
    wheel.write_bytes(lie)
    assert "Bad CRC-32" in refused(wheel)


def test_member_beyond_the_limit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_source, "MAX_MEMBER_BYTES", 100)
    wheel = wheel_of(tmp_path, {"a/m.gguf": bytes(101)})
    assert "must have at most 100 bytes, declares 101" in refused(wheel)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(method: int, tmp_path: Path) -> None:
    assert "must be stored or deflated" in refused(wheel_of(tmp_path, {"m.gguf": b"GGUF"}, method))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_changed_wheel_gives_the_same_gguf_or_is_refused(
    data: st.DataObject, tmp_path: Path
) -> None:
    wheel = wheel_of(tmp_path, {"a/m.gguf": CONTENT}, zipfile.ZIP_DEFLATED)
    content = bytearray(wheel.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    wheel.write_bytes(content)
    try:
        found = read(wheel)
    except BadModelFile:
        return
    assert found == CONTENT
