"""`tokenway usage`: what tenants used, from the request log, and what it costs."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from services.launcher.books import REQUEST_LOG_URL, REQUESTS
from services.launcher.prices import read_prices
from services.launcher.terminal import show
from services.launcher.time_span import time_span
from services.launcher.up_options import DEFAULT_KEYS
from services.launcher.usage import usages
from services.launcher.usage_table import usage_json, usage_table
from services.shared.config import BadConfig
from services.shared.plain_text import plain
from services.shared.request_log.database import open_for_reading
from services.shared.request_log.drop import FAULTS, words_of
from services.shared.request_log.reader import Grouping, RequestReader
from services.shared.request_log.settings import RequestLogSettings

DEFAULT_FILE = DEFAULT_KEYS / REQUESTS
PASSWORD_FILE = "TOKENWAY_REQUEST_LOG__PASSWORD_FILE"  # noqa: S105 names a file
LEAST_WIDTH = 160
MAX_FAULT = 300


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    try:
        prices = None if arguments.prices is None else read_prices(arguments.prices)
        settings = log_settings(arguments, os.environ)
        with closing(RequestReader(open_for_reading(settings), arguments.tenant)) as reader:
            sums = reader.usage(arguments.by, arguments.since)
    except (BadConfig, ValueError) as error:
        return _failed(str(error))
    except FAULTS as error:
        return _failed(f"the request log cannot be read: {words_of(error)}")
    groups, total = usages(sums, arguments.by, prices)
    if arguments.json:
        sys.stdout.write(usage_json(groups, total, arguments.by, prices) + "\n")
        return 0
    show(usage_table(groups, total, arguments.by, prices), LEAST_WIDTH)
    return 0


def log_arguments(parser: argparse.ArgumentParser) -> None:
    """Which request log a command reads; see `log_settings`."""
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--file", type=Path, help=f"of SQLite ({DEFAULT_FILE})")
    where.add_argument("--url", help=f"of the database ({REQUEST_LOG_URL})")
    parser.add_argument("--password-file", type=Path, help=f"of the database ({PASSWORD_FILE})")


def log_settings(arguments: argparse.Namespace, environ: Mapping[str, str]) -> RequestLogSettings:
    """The log that the command line names, else the environment, else the one of `tokenway up`.

    Raises ValueError for a URL that is none.
    """
    file: Path | None = arguments.file
    url = arguments.url or (environ.get(REQUEST_LOG_URL) if file is None else None)
    if url is None:
        return RequestLogSettings(url=f"sqlite:///{file or DEFAULT_FILE}")
    password_file = arguments.password_file or environ.get(PASSWORD_FILE)
    return RequestLogSettings(
        url=url, password_file=None if password_file is None else Path(password_file)
    )


def _failed(fault: str) -> int:
    sys.stderr.write(f"tokenway usage: {plain(fault, MAX_FAULT)}\n")
    return 1


def _since(text: str) -> int:
    """Microseconds since 1970: so long before now, or from a day or a time with its zone on."""
    try:
        span = time_span(text)
        if span is not None:
            return int(1e6 * (datetime.now(UTC) - span).timestamp())
        time = datetime.fromisoformat(text)
    except (OverflowError, ValueError):
        time = None
    if time is not None and time.tzinfo is None and len(text) == len("2030-01-31"):
        time = time.replace(tzinfo=UTC)
    if time is None or time.tzinfo is None:
        raise argparse.ArgumentTypeError(
            f"must be like 12h or 7d, 2030-01-31 or 2030-01-31T12:00Z, got {text!r}"
        )
    return int(1e6 * time.timestamp())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tokenway usage", description=__doc__)
    parser.add_argument(
        "--by",
        type=Grouping,
        choices=list(Grouping),
        default=Grouping.TENANT,
        help="what sums are told by; days are those of UTC (tenant)",
    )
    parser.add_argument(
        "--since", type=_since, default=0, help="7d, 2030-01-31, ... (all that is kept)"
    )
    parser.add_argument("--tenant", help="of this one alone")
    parser.add_argument("--prices", type=Path, help="a YAML file of prices")
    log_arguments(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser
