"""A tree of dataclasses from dotted keys, with types checked and no value guessed."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from services.shared.byte_size import ByteSize

T = TypeVar("T")


class SettingError(Exception):
    """What is wrong with one key."""

    def __init__(self, key: str, fault: str) -> None:
        super().__init__(f"{key} {fault}")
        self.key = key
        self.fault = fault


def keys(cls: type) -> frozenset[str]:
    """Every dotted key of the tree below `cls`."""
    return frozenset(_types(cls))


def parsed(cls: type, values: Mapping[str, Any], *, from_text: bool) -> dict[str, Any]:
    """The values of dotted keys, as the types that the fields of `cls` have.

    Args:
        cls: a dataclass of bool, int, float, Decimal, str, Path, ByteSize, StrEnum, `| None` of
            these, tuples of these or of records, and dataclasses. A record is a dataclass that is
            written as a mapping or as the text that its class method `parse` reads.
        values: what is set.
        from_text: whether the values are text to be read, as an environment has it.

    Raises:
        SettingError: a key that `cls` lacks, or a value of another type.
    """
    known = _types(cls)
    for key in values:
        if key not in known:
            raise SettingError(key, f"is unknown{_nearest(key, known)}")
    return {
        key: _parse(key, known[key], value, from_text=from_text) for key, value in values.items()
    }


def _types(cls: type, prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, hint in get_type_hints(cls).items():
        if is_dataclass(hint):
            found |= _types(hint, f"{prefix}{name}.")  # type: ignore[arg-type]  # a class, as hints are
        else:
            found[f"{prefix}{name}"] = hint
    return found


def instance(
    cls: type[T], values: Mapping[str, Any], prefix: str = "", default: Any = MISSING
) -> T:
    """An instance of `cls` from parsed values.

    A dataclass refuses in `__post_init__` what is out of bounds, by a ValueError whose text begins
    with the name of the field.

    Args:
        cls: the dataclass.
        values: what is set, by dotted key.
        prefix: of the keys that are this instance's.
        default: an instance that has what is not set; without it the fields' own defaults count.

    Raises:
        SettingError: a value out of bounds, or a required key that is not set.
    """
    hints = get_type_hints(cls)
    arguments: dict[str, Any] = {}
    for field in fields(cls):  # type: ignore[arg-type]  # `type[T]` cannot say "of a dataclass"
        key, hint = f"{prefix}{field.name}", hints[field.name]
        unset = _default(field) if default is MISSING else getattr(default, field.name)
        if is_dataclass(hint):
            arguments[field.name] = instance(hint, values, f"{key}.", unset)  # type: ignore[arg-type]
        elif (value := values.get(key, unset)) is MISSING:
            raise SettingError(key, "must be set")
        else:
            arguments[field.name] = value
    try:
        return cls(**arguments)
    except ValueError as error:
        name, _, fault = str(error).partition(" ")
        raise SettingError(f"{prefix}{name}", fault) from error


def _default(field: Field[Any]) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _nearest(key: str, known: Mapping[str, Any]) -> str:
    last = key.rpartition(".")[2]
    near = sorted(name for name in known if name.rpartition(".")[2] == last)
    section = sorted(name for name in known if name.startswith(f"{key.rpartition('.')[0]}."))
    choice = near or section
    return f"; there is {', '.join(choice[:6])}" if choice else ""


def _parse(key: str, hint: Any, value: Any, *, from_text: bool) -> Any:
    try:
        if get_origin(hint) is tuple and is_dataclass(record := get_args(hint)[0]):
            items = enumerate(_items(value, from_text=from_text))
            return tuple(_record(f"{key}[{index}]", record, item) for index, item in items)
        return _value(hint, value, from_text=from_text)
    except ValueError as error:
        raise SettingError(key, f"{error}, got {value!r}") from error


def _record(key: str, cls: Any, item: Any) -> Any:
    """A dataclass that is an item of a list; its fields are told as `key.field`."""
    try:
        if isinstance(item, str):
            return cls.parse(item)
        if isinstance(item, dict):
            return instance(cls, parsed(cls, item, from_text=False))
    except SettingError as error:
        raise SettingError(f"{key}.{error.key}", error.fault) from error
    except ValueError as error:
        name, _, fault = str(error).partition(" ")
        raise SettingError(f"{key}.{name}", fault) from error
    raise SettingError(key, f"must be text or a mapping, got {item!r}")


def _items(value: Any, *, from_text: bool) -> list[Any]:
    items = [item.strip() for item in value.split(",")] if from_text else value
    if not isinstance(items, list):
        raise ValueError("must be a list")  # noqa: TRY004  # told as a fault of the value
    return items


def _value(hint: Any, value: Any, *, from_text: bool) -> Any:
    """`value` as `hint`; ValueError says what it must be."""
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (kind for kind in get_args(hint) if kind is not type(None))
    if get_origin(hint) is tuple:
        items = _items(value, from_text=from_text)
        return tuple(_value(get_args(hint)[0], item, from_text=from_text) for item in items)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _choice(hint, value)
    kind = _KINDS[hint]
    if from_text:
        return kind.read(value)
    if type(value) not in kind.accepts:
        raise ValueError(f"must be {kind.words}")
    return kind.read(value)


def _choice(enum: type[StrEnum], value: Any) -> StrEnum:
    if value not in list(enum):
        raise ValueError(f"must be one of {', '.join(enum)}")
    return enum(value)


def _boolean(value: Any) -> bool:
    known = {"true": True, "1": True, "false": False, "0": False}
    if isinstance(value, bool):
        return value
    if value.lower() not in known:
        raise ValueError("must be true or false")
    return known[value.lower()]


def _number(kind: Callable[[Any], Any], words: str) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        try:
            return kind(value)
        except (ValueError, OverflowError) as error:
            raise ValueError(f"must be {words}") from error

    return read


def _decimal(value: Any) -> Decimal:
    """The number as it was written: the shortest text of a float has all digits that it came of."""
    try:
        return Decimal(str(value))
    except InvalidOperation as error:
        raise ValueError("must be a number") from error


@dataclass(frozen=True, slots=True)
class _Kind:
    words: str
    accepts: tuple[type, ...]
    read: Callable[[Any], Any]


_KINDS: dict[Any, _Kind] = {
    bool: _Kind("true or false", (bool,), _boolean),
    int: _Kind("an integer", (int,), _number(int, "an integer")),
    float: _Kind("a number", (int, float), _number(float, "a number")),
    Decimal: _Kind("a number", (int, float, str), _decimal),
    str: _Kind("text", (str,), str),
    Path: _Kind("a path", (str,), Path),
    ByteSize: _Kind(
        "bytes, for example 512MiB or 4GB", (int, str), lambda value: ByteSize.parse(str(value))
    ),
}
