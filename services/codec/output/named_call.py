"""Calls that are a name and then their arguments as JSON."""

from __future__ import annotations

import re

from services.codec.output.calls import Calls
from services.codec.output.markers import Markers
from services.codec.output.object_call import json_value
from services.codec.output.scanner import Scanner, Steps

MAX_NAME = 512


def named(scan: Scanner, calls: Calls, pattern: re.Pattern[str], ends: Markers) -> Steps[bool]:
    """Reads the name and what ends it, and begins the call."""
    head, end = yield from scan.until(ends, MAX_NAME)
    return end is not None and begun(calls, head, pattern)


def begun(calls: Calls, head: str, pattern: re.Pattern[str]) -> bool:
    name = pattern.fullmatch(calls.spelled(head))
    return name is not None and calls.begin(name[1])


def json_arguments(scan: Scanner, calls: Calls) -> Steps[None]:
    """Reads the arguments of a call that was begun; where they are JSON it is ended, too."""
    yield from json_value(scan, calls)
    if calls.is_complete:
        calls.end()
    elif scan.is_over:
        calls.end(is_cut=True)
