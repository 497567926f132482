"""The environment that chat templates run in: no way out, and a limit on work and text."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import wraps
from typing import Any

from jinja2 import nodes
from jinja2.exceptions import SecurityError, TemplateError
from jinja2.ext import Extension
from jinja2.parser import Parser
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment, safe_range
from jinja2.utils import Namespace
from jinja2.visitor import NodeTransformer

MAX_TEXT = 64 * 2**20
MAX_NUMBER = 10_000
MAX_INTEGER_BITS = 256
_STEP = 1_000
_ITEM = 200
_SIZED = (str, bytes, list, tuple, dict)
_LOADING = (nodes.Include, nodes.Import, nodes.FromImport, nodes.Extends)
# Filters that choose or count, and make no text of their arguments.
_STRUCTURAL = frozenset(
    {"length", "count", "list", "first", "last", "map", "select", "reject", "selectattr", "abs"}
    | {"rejectattr", "items", "dictsort", "sort", "unique", "reverse", "default", "d", "batch"}
    | {"slice", "min", "max", "sum", "groupby", "attr", "int", "float", "round"}
)
# They cut through the marks that stand in untrusted text, or make text at random.
_REMOVED = ("wordwrap", "striptags", "random")
_WIDE_FORMAT = re.compile(r"%[^a-zA-Z%]*(\*|\d{5})|\{[^{}:]*:[^{}]*?(\{|\d{5})")


class TooMuchWork(TemplateError):
    """A template that does more than its share. Units: characters written, 1,000 per step."""


class Refused(TemplateError):
    """What the template itself says about a conversation that it cannot render."""


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja with the filters and functions that chat templates count on.

    Loops, calls and everything that makes text draw on the budget that the thread has within
    `budget`; the count does not depend on the machine's speed.
    """

    intercepted_binops = frozenset({"+", "*", "**", "%"})

    def __init__(self) -> None:
        super().__init__(
            trim_blocks=True,
            lstrip_blocks=True,
            extensions=["jinja2.ext.loopcontrols", _GenerationTag],
            finalize=self._written,
        )
        self._left = threading.local()
        self.filters = {
            name: self._guarded(name, fn)
            for name, fn in self.filters.items()
            if name not in _REMOVED
        }
        self.filters["tojson"] = self._guarded("tojson", _tojson)
        self.globals = {
            "range": safe_range,
            "dict": _dict,
            "namespace": _Namespace,
            "raise_exception": _raise_exception,
            "strftime_now": _strftime_now,
        }

    @contextmanager
    def budget(self, units: int) -> Iterator[None]:
        """Work that this thread may do inside."""
        self._left.units = units
        try:
            yield
        finally:
            del self._left.units

    def spend(self, size: int) -> None:
        self._left.units -= size
        if self._left.units < 0 or size > MAX_TEXT:
            raise TooMuchWork("the template does too much work")

    def step(self) -> bool:
        """One turn of a loop. True, so that it can stand in a condition."""
        self.spend(_STEP)
        return True

    def concat_text(self, *values: Any) -> str:
        """The operator `~`."""
        for value in values:
            self._weigh(value)
        return "".join(map(str, values))

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "%" and isinstance(left, str):
            _check_format(left)
            self._weigh(right)
        elif operator == "*":
            self.spend(_size(left) * _times(right) + _size(right) * _times(left))
        self.spend(_size(left) + _size(right))
        if operator in {"*", "**"} and isinstance(left, int) and isinstance(right, int):
            _check_power(left, right, operator)
        return super().call_binop(context, operator, left, right)

    def call(self, context: Context, called: Any, /, *args: Any, **kwargs: Any) -> Any:
        self.spend(_STEP)
        owner = getattr(called, "__self__", None)
        if isinstance(owner, str | bytes):
            self._check_sizes(called.__name__, (owner, *args), kwargs)
        result = super().call(context, called, *args, **kwargs)
        self.spend(_size(result))
        return result

    def wrap_str_format(self, value: Any) -> Callable[..., str] | None:
        wrapped = super().wrap_str_format(value)
        if wrapped is not None:
            _check_format(value.__self__)
        return wrapped

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        template = super()._parse(source, name, filename)
        if any(template.find(kind) is not None for kind in _LOADING):
            raise SecurityError("a chat template must not load other templates")
        _Instrument().visit(template)
        template.set_environment(self)
        return template

    def _written(self, value: Any) -> Any:
        self._weigh(value)
        return value

    def _weigh(self, value: Any) -> None:
        """Spends what the value takes as text."""
        self.spend(_size(value) + _ITEM)
        if isinstance(value, Mapping):
            value = [*value.keys(), *value.values()]
        if isinstance(value, list | tuple):
            for item in value:
                self._weigh(item)

    def _guarded(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The filter with its cost on the budget, numbers that set sizes within bounds."""

        @wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            self._check_sizes(name, args, kwargs)
            result = function(*args, **kwargs)
            if isinstance(result, Iterator):
                result = list(result)
            self.spend(_size(result) * (1 if isinstance(result, str) else _ITEM // 10))
            return result

        return guarded

    def _check_sizes(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Bounds what a string method or filter can make of its arguments before it does."""
        self.spend(_STEP + sum(map(_size, args)))
        if name in _STRUCTURAL:
            return
        for value in (*args, *kwargs.values()):
            self._weigh(value)
        for value in (*args[1:], *kwargs.values()):
            if isinstance(value, int) and abs(value) > MAX_NUMBER:
                raise TooMuchWork(f"{name} takes numbers up to {MAX_NUMBER}")
        texts = [value for value in (*args, *kwargs.values()) if isinstance(value, str)]
        if name == "replace" and len(texts) > 2:
            self.spend(texts[0].count(texts[1]) * len(texts[2]))
        elif name == "join" and texts:
            self.spend(max(map(len, texts)) * sum(map(_size, args)))
        elif name == "format" and texts:
            _check_format(texts[0])


class _Namespace(Namespace):
    """Namespaces without names that Python itself looks at."""

    def __setitem__(self, name: str, value: Any) -> None:
        if name.startswith("_"):
            raise SecurityError("namespaces have no attributes that begin with an underscore")
        super().__setitem__(name, value)


class _GenerationTag(Extension):
    """`generation` blocks mark answers for training; here they are what is in them."""

    tags = {"generation"}  # noqa: RUF012  as the base class has it

    def parse(self, parser: Parser) -> list[nodes.Node]:
        next(parser.stream)
        return parser.parse_statements(("name:endgeneration",), drop_needle=True)


class _Instrument(NodeTransformer):
    """Counts loops and joins: bodies begin with a step, `~` becomes a call."""

    def visit_For(self, node: nodes.For) -> nodes.For:  # noqa: N802  named for the node
        self.generic_visit(node)
        node.body.insert(0, nodes.ExprStmt(_own_call("step", [])))
        if node.test is not None:
            node.test = nodes.And(_own_call("step", []), node.test)
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Call:  # noqa: N802  named for the node
        self.generic_visit(node)
        return _own_call("concat_text", node.nodes)


def _own_call(method: str, args: list[nodes.Expr]) -> nodes.Call:
    return nodes.Call(nodes.EnvironmentAttribute(method), args, [], None, None)


def _size(value: Any) -> int:
    return len(value) if isinstance(value, _SIZED) else 1


def _times(value: Any) -> int:
    return max(value, 0) if isinstance(value, int) else 0


def _check_power(left: int, right: int, operator: str) -> None:
    bits = left.bit_length() * (abs(right) if operator == "**" else 1) + right.bit_length()
    if bits > MAX_INTEGER_BITS:
        raise TooMuchWork(f"integers have at most {MAX_INTEGER_BITS} bits")


def _check_format(text: str) -> None:
    if _WIDE_FORMAT.search(text):
        raise TooMuchWork("a format's width has at most four digits, and no variable one")


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """JSON as the templates of Hugging Face expect it: Jinja's own filter escapes for HTML."""
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _dict(*args: Any, **kwargs: Any) -> dict[Any, Any]:
    return dict(*args, **kwargs)


def _raise_exception(message: str) -> None:
    raise Refused(str(message))


def _strftime_now(form: str) -> str:
    return datetime.now().astimezone().strftime(form)


def literals(template: nodes.Template) -> Iterable[str]:
    """The texts that a template writes itself."""
    yield from (node.data for node in template.find_all(nodes.TemplateData))
    values = (node.value for node in template.find_all(nodes.Const))
    yield from (value for value in values if isinstance(value, str))
