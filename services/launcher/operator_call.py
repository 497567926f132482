"""One call of an operator to a service that runs, and what the terminal shows of its answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

import grpc
from google.protobuf.json_format import MessageToJson
from google.protobuf.message import Message
from rich.console import RenderableType

from services.launcher.no_answer import why_no_answer
from services.launcher.own_certificates import Calling
from services.launcher.terminal import show
from services.shared.plain_text import plain
from services.shared.tls.certificate_files import BadCertificates

DEFAULT_AT = "127.0.0.1:9000"
TIMEOUT_S = 10.0
LEAST_WIDTH = 160
MAX_FAULT = 2000

_READY = grpc.ChannelConnectivity.READY
_FAILED = (grpc.ChannelConnectivity.TRANSIENT_FAILURE, grpc.ChannelConnectivity.SHUTDOWN)

Answer = TypeVar("Answer")


class NobodyThere(Exception):
    """Nothing takes connections at the address."""


@dataclass(frozen=True, kw_only=True, slots=True)
class OperatorCall(Generic[Answer]):
    """A command that asks.

    Attributes:
        program: what its faults begin with, for example `tokenway router`.
        callee: what must be at the address, for example `router`.
        calling: how it is called.
        ask: asks on an open channel; raises ValueError for what cannot be asked.
        render: shows the answer to people.
        json: shows it to programs.
    """

    program: str
    callee: str
    calling: Calling
    ask: Callable[[grpc.aio.Channel], Awaitable[Answer]]
    render: Callable[[Answer], RenderableType]
    json: Callable[[Answer], str]

    async def run(self, at: str, *, as_json: bool) -> int:
        """Asks at `host:port`, prints the answer or one line on stderr, gives the exit status."""
        try:
            answer = await self._asked(at)
        except grpc.aio.AioRpcError as error:
            return self._failed(self._fault(error, at))
        except (NobodyThere, TimeoutError):
            return self._failed(await why_no_answer(self.callee, at, self.calling))
        except (BadCertificates, OSError, ValueError) as error:
            return self._failed(str(error))
        if as_json:
            sys.stdout.write(self.json(answer) + "\n")
        else:
            show(self.render(answer), LEAST_WIDTH)
        return 0

    async def _asked(self, at: str) -> Answer:
        async with self.calling.dial(at) as channel:
            await _connected(channel)
            return await self.ask(channel)

    def _failed(self, fault: str) -> int:
        sys.stderr.write(f"{self.program}: {plain(fault, MAX_FAULT)}\n")
        return 1

    def _fault(self, error: grpc.aio.AioRpcError, at: str) -> str:
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return f"{at} is no {self.callee}"
        return error.details() or error.code().name


async def _connected(channel: grpc.aio.Channel) -> None:
    """Returns when there is a connection: what is unavailable then is so by the service's word.

    Raises:
        NobodyThere: it is refused, or the name is of no machine.
        TimeoutError: nothing comes of it for long.
    """
    async with asyncio.timeout(TIMEOUT_S):
        while (state := channel.get_state(try_to_connect=True)) != _READY:
            if state in _FAILED:
                raise NobodyThere
            await channel.wait_for_state_change(state)


def json_of(answer: Message) -> str:
    """All fields, those that are zero too, under the names of the contract."""
    return MessageToJson(
        answer,
        indent=2,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=True,
    )
