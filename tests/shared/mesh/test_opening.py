"""A service starts with certificates that count, or alone on its machine, and else not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.shared.config import BadConfig
from services.shared.mesh.opening import meshing
from services.shared.mesh.role_guard import RoleGuard
from services.shared.mesh.rules import RULES
from services.shared.tls.certificate_files import CERTIFICATE
from services.shared.tls.identity import Role
from services.shared.tls.settings import MeshSettings
from tests.mesh_bed import LIFE, Certified
from tests.waiting import until

HERE = "127.0.0.1"


async def opened(settings: MeshSettings, host: str = HERE, role: Role = Role.ENGINE) -> None:
    async with meshing(settings, role, host):
        pass


async def test_without_a_folder_the_start_is_refused_and_says_what_to_do() -> None:
    with pytest.raises(BadConfig, match=r"security\.certificates .*`tokenway certs issue engine"):
        await opened(MeshSettings(mtls=True))


async def test_a_folder_that_cannot_be_used_is_told_by_its_key_file_and_reason(
    tmp_path: Path,
) -> None:
    settings = Certified(tmp_path).settings(Role.ENGINE)
    told = r"security\.certificates: .*cert\.pem must be of a router, got spiffe://tokenway/engine"
    with pytest.raises(BadConfig, match=told):
        await opened(settings, role=Role.ROUTER)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "engine.internal"])  # noqa: S104
async def test_the_clear_is_refused_beyond_this_machine(host: str) -> None:
    with pytest.raises(BadConfig, match=rf"server\.host is {host}, .* security\.mtls is false"):
        await opened(MeshSettings(mtls=False), host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
async def test_the_clear_is_loud_on_this_machine(
    host: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with meshing(MeshSettings(mtls=False), Role.ENGINE, host) as mesh:
        assert (mesh.server, mesh.door, mesh.not_after) == (None, None, None)
        assert not any(isinstance(guard, RoleGuard) for guard in mesh.guards(RULES))
    assert "SERVICES TALK IN THE CLEAR" in caplog.text


async def test_another_certificate_is_taken_and_a_broken_one_is_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.shared.mesh.following.INTERVAL_S", 0.01)
    certified = Certified(tmp_path)
    settings = certified.settings(Role.ENGINE)
    assert settings.certificates is not None
    async with meshing(settings, Role.ENGINE, HERE) as mesh:
        way = mesh.way("engine.tokenway")
        first = mesh.not_after
        assert first is not None
        (settings.certificates / CERTIFICATE).write_bytes(b"broken")
        await until(lambda: "cert.pem holds no certificate in PEM" in caplog.text)
        assert (mesh.not_after, way.version) == (first, 0)
        assert "what it said before counts on" in caplog.text
        certified.folder(Role.ENGINE, life=2 * LIFE)
        await until(lambda: mesh.not_after != first)
        await way.worn(0)
        assert way.version == 1
