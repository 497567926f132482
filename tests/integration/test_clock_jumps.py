"""Services whose wall clock jumps by an hour, forth and back: nothing changes."""

from __future__ import annotations

from services.shared.model_folder import ModelFolder
from services.shared.stream.events import Finished
from tests.integration.stack import Launcher, Service, simulated
from tests.recorder import Recorder, submission
from tests.stream_server import Watched, client
from tests.waiting import until

STREAMS = 16
TOKENS = 200
JUMPING = """
import itertools, sys, time
real = time.time
jumps = itertools.cycle((3600.0, 0.0, -3600.0))
def jumping():
    caller = sys._getframe(1).f_globals["__name__"]
    # gRPC compares with the machine's clock, which does not jump here.
    return real() + (0.0 if caller.startswith("grpc") else next(jumps))
time.time = jumping
time.time_ns = lambda: int(jumping() * 1e9)
from services.{}.__main__ import main
sys.exit(main(sys.argv[1:]))
"""


def jumping(service: str) -> tuple[str, str]:
    return "-c", JUMPING.replace("{}", service)


def told(router: Service) -> list[str]:
    """Each state that a replica came to, in order."""
    return [line["to"] for line in router.lines() if "to" in line]


async def test_wall_clocks_that_jump_by_an_hour_change_nothing(
    launcher: Launcher, model_folder: ModelFolder
) -> None:
    settings = simulated(model_folder)
    with (
        launcher.running("engine0", settings, jumping("engine")) as one,
        launcher.running("engine1", settings, jumping("engine")) as other,
        launcher.running(
            "router", {"replicas": [one.grpc, other.grpc]}, jumping("router")
        ) as router,
    ):
        await until(lambda: told(router).count("ready") == 2)
        async with client(router.grpc, Watched()) as session:
            recorders = [Recorder() for _ in range(STREAMS)]
            for number, recorder in enumerate(recorders):
                asked = submission(
                    f"x{number}", recorder, prompt_ids=(5, 6), max_tokens=TOKENS, timeout_ms=60_000
                )
                session.submit(asked)
            for recorder in recorders:
                finished = await recorder.ended()
                assert isinstance(finished, Finished)
                assert len(recorder.ids) == finished.usage.completion_tokens
                times = finished.timeline
                assert max(times.queued_us, times.prefill_us, times.decode_us) < 60e6
        for service in (one, other, router):
            assert len({line["ts"][:13] for line in service.lines()}) > 1  # hours
        assert set(told(router)) == {"starting", "ready"}
        assert told(router).count("ready") == 2
