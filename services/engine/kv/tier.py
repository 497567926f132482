"""Where blocks are found, the nearest first."""

from __future__ import annotations

from enum import StrEnum


class Tier(StrEnum):
    DEVICE = "device"
    HOST = "host"
    PEER = "peer"
    SERVICE = "service"


class Skip(StrEnum):
    """Why a block was not written."""

    QUEUE_FULL = "queue_full"
    OFF = "off"
    FAILED = "failed"
    PRESENT = "present"
    NOT_WORTH = "not_worth"
