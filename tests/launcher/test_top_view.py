"""What people see of a router's work."""

from __future__ import annotations

from collections.abc import Sequence
from io import StringIO

from rich.console import Console
from tokenway.router.v1 import router_pb2 as pb
from tokenway.types.v1 import types_pb2

from services.launcher.top_view import Moment, top_view

LOAD = types_pb2.Load(
    running=3,
    waiting=1,
    slots=8,
    step_us=12_300,
    total_blocks=100,
    free_blocks=20,
    cached_blocks=30,
    device_memory=types_pb2.DeviceMemory(total_bytes=80 * 2**30, used_bytes=60 * 2**30),
)
REPLICA = pb.Replica(
    address="10.0.0.1:9100",
    status=pb.REPLICA_STATUS_READY,
    load=LOAD,
    load_age_ms=40,
    running=3,
    outstanding_tokens=900,
)


def moment(at_s: float = 0, output_tokens: int = 0, tenants: Sequence[pb.Tenant] = ()) -> Moment:
    told = pb.ListReplicasResponse(
        replicas=[REPLICA], waiting=2, output_tokens=output_tokens, tenants=tenants
    )
    return Moment(at_s=at_s, told=told)


def seen(now: Moment, before: Moment | None = None, fault: str | None = None) -> str:
    console = Console(file=StringIO(), width=200, markup=False, highlight=False)
    console.print(top_view(now, before, fault))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_a_replica_shows_its_load_and_its_memory() -> None:
    (line,) = [line for line in seen(moment()).splitlines() if "10.0.0.1:9100" in line]
    words = line.split()
    assert words[1:8] == ["ready", "both", "3/8", "1", "900", "12.3", "ms"]
    assert "█████░░░░░ 50/100, 30 cached" in line
    assert "████████░░ 60.0/80.0 GiB" in line
    assert line.rstrip().endswith("40 ms ago")


def test_a_rate_is_told_between_two_moments() -> None:
    before, now = moment(10, 100), moment(12, 500)
    assert "tokens/s" not in seen(now)
    assert seen(now, before).startswith("3 running, 2 waiting, 200 tokens/s\n")


def test_a_router_that_began_anew_has_no_rate() -> None:
    assert "tokens/s" not in seen(moment(12, 5), moment(10, 100))


def test_a_replica_without_connection_or_device_shows_neither() -> None:
    gone = pb.ListReplicasResponse(replicas=[pb.Replica(address="a:1")])
    (line,) = [line for line in seen(Moment(at_s=0, told=gone)).splitlines() if "a:1" in line]
    assert line.split()[-4:] == ["-"] * 4


def test_tenants_stand_below_and_break_no_line() -> None:
    tenants = [
        pb.Tenant(name="acme\x1b[2J\nroot", running=2, waiting=1, outstanding_tokens=70),
        pb.Tenant(running=1),
    ]
    lines = seen(moment(tenants=tenants)).splitlines()
    assert [line.split() for line in lines if "acme" in line] == [
        [r"acme\x1b[2J\nroot", "2", "1", "70"]
    ]
    assert ["-", "1", "0", "0"] in [line.split() for line in lines]


def test_what_is_old_says_so() -> None:
    assert "not of now: Connection refused" in seen(moment(), fault="Connection refused")
