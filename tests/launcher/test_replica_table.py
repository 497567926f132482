"""What people see of a router's replicas."""

from __future__ import annotations

from io import StringIO

from rich.console import Console, RenderableType
from tokenway.engine.v1 import engine_pb2
from tokenway.router.v1 import router_pb2 as pb
from tokenway.types.v1 import types_pb2

from services.launcher.replica_table import explanation_table, replica_table


def printed(what: RenderableType) -> list[list[str]]:
    """The words of each line that has some."""
    out = StringIO()
    Console(file=out, width=200, markup=False).print(what)
    return [line.split() for line in out.getvalue().splitlines() if line.split()]


def test_a_replica_that_is_gone_has_no_load_and_a_reason() -> None:
    up = pb.Replica(
        address="a:1",
        status=pb.REPLICA_STATUS_DEGRADED,
        weight=0.5,
        pool="long",
        version="0123456789abcdef",
        running=3,
        outstanding_tokens=700,
        load=types_pb2.Load(),
        load_age_ms=40,
        known_blocks=9,
        role=engine_pb2.ROLE_DECODE,
        reason="silent for 2 s",
    )
    gone = pb.Replica(address="b:1", status=pb.REPLICA_STATUS_GONE, weight=1, reason="no way")
    lines = printed(replica_table([up, gone], waiting=2))
    words = "a:1 degraded decode 0.5 long 0123456789ab 3 700 40 ms 9 silent for 2 s"
    assert lines[2] == words.split()
    assert lines[3] == ["b:1", "gone", "both", "1", "all", "-", "0", "0", "-", "0", "no", "way"]
    assert lines[-1] == ["2", "generations", "wait"]


def test_a_state_of_a_later_router_is_told_by_its_number() -> None:
    later = pb.Replica.FromString(b"\x0a\x03a:1\x10\x63")
    assert printed(replica_table([later]))[2][:2] == ["a:1", "99"]


def test_a_replica_that_takes_nothing_has_no_cost() -> None:
    told = pb.ExplainResponse(
        reason="nobody can",
        policy="affinity",
        options=[
            pb.Option(
                address="a:1",
                status=pb.REPLICA_STATUS_GONE,
                cost=float("inf"),
                reason="gone",
            )
        ],
    )
    lines = printed(explanation_table(told))
    assert lines[0] == ["no", "replica:", "nobody", "can"]
    assert lines[1] == ["policy", "affinity"]
    assert lines[-1] == ["a:1", "gone", "both", "no", "0", "-", "gone"]


def test_an_option_names_the_replica_that_others_blocks_come_from() -> None:
    options = [
        pb.Option(address="a:1", reason="3000 prefilled by another", prefill="p:1"),
        pb.Option(address="b:1", reason="640 cached at another", peer="a:1"),
    ]
    lines = printed(explanation_table(pb.ExplainResponse(options=options)))
    assert [line[-1] for line in lines[-2:]] == ["(p:1)", "(a:1)"]
