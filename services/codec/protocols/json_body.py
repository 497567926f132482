"""A request's body: bytes to the fields of one JSON object, within bounds."""

from __future__ import annotations

import json
from typing import Any

from services.codec.protocols.fields import Fields
from services.shared.errors import InvalidRequest, InvalidType

MAX_DEPTH = 64
MAX_DIGITS = 100


class _BadNumber(ValueError):
    """A number of the text that JSON does not know or that is out of any range."""


def object_of(body: bytes) -> Fields:
    """Reads a body. Duplicate keys are taken, the last one counts, as everywhere.

    Raises:
        InvalidRequest: not UTF-8, not JSON, nested deeper than 64, or not an object.
    """
    try:
        value = json.loads(body.decode("utf-8-sig"), parse_constant=_constant, parse_int=_integer)
    except UnicodeDecodeError as error:
        raise InvalidRequest(f"body must be UTF-8, byte {error.start} is not") from None
    except _BadNumber as error:
        raise InvalidRequest(str(error)) from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(f"body must be JSON: {error.msg}, character {error.pos}") from None
    except RecursionError:
        raise _too_deep() from None
    if not isinstance(value, dict):
        raise InvalidType("body must be a JSON object")
    if body.count(b"[") + body.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    return Fields(value)


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return
    raise _too_deep()


def _inside(value: Any) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value
    return [item for item in inner if isinstance(item, (dict, list))]


def _too_deep() -> InvalidRequest:
    return InvalidRequest(f"body must be nested at most {MAX_DEPTH} deep")


def _constant(name: str) -> float:
    raise _BadNumber(f"body must be JSON, {name} is no number of it")


def _integer(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise _BadNumber(f"numbers must have at most {MAX_DIGITS} digits, got {len(digits)}")
    return int(digits)
