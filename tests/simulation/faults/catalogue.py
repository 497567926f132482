"""All faults, by name."""

from __future__ import annotations

from tests.simulation.faults import (
    callers,
    fleet,
    network,
    process,
    protocol,
    reports,
    router,
    transfers,
)
from tests.simulation.faults.fault import Fault

TRANSFERS: dict[str, type[Fault]] = {
    "fetch late": transfers.Late,
    "fetch cut": transfers.Cut,
    "fetch corrupt": transfers.Corrupt,
    "fetch truncated": transfers.Truncated,
    "fetch of another block": transfers.OtherBlock,
    "fetch from another life": transfers.OtherLife,
    "cache switched": transfers.CacheSwitched,
    "prefill killed": transfers.PrefillKilled,
    "borrowed": transfers.Borrowed,
}
"""Those that no generation may notice by anything but its time."""

FAULTS: dict[str, type[Fault]] = {
    "kill": process.Kill,
    "restart": process.Restart,
    "freeze": process.Freeze,
    "stuck loop": process.StuckLoop,
    "slow": process.Slow,
    "drain": process.Drain,
    "cut": network.Cut,
    "flap": network.Flap,
    "half open": network.HalfOpen,
    "delay": network.Delay,
    "no loads": reports.NoLoads,
    "old loads": reports.OldLoads,
    "lies": reports.Lies,
    "moods": reports.Moods,
    "skip": protocol.Skip,
    "repeat": protocol.Repeat,
    "end too soon": protocol.EndTooSoon,
    "accept twice": protocol.AcceptTwice,
    "unknown stream": protocol.UnknownStream,
    "late frames": protocol.LateFrames,
    "answers after cancel": protocol.AfterCancel,
    "burst": callers.Burst,
    "client leaves": callers.Leave,
    "client never reads": callers.NoReading,
    "router killed": router.RouterKill,
    "router drained": router.RouterDrain,
    "clock jump": router.ClockJump,
    "operator drains": fleet.AdminDrain,
    "reweight": fleet.Reweight,
    "remove": fleet.Remove,
    "add": fleet.Add,
    "another model": fleet.AnotherModel,
    "another version": fleet.AnotherVersion,
    "lost blocks": fleet.LostBlocks,
    **TRANSFERS,
}
