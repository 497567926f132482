"""`tokenway trace`: draws where the time of a request went, from the request log."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict

from services.launcher.terminal import show
from services.launcher.trace_view import trace_view
from services.launcher.usage_command import LEAST_WIDTH, MAX_FAULT, log_arguments, log_settings
from services.shared.config import BadConfig
from services.shared.plain_text import plain
from services.shared.request_log.database import open_for_reading
from services.shared.request_log.drop import FAULTS, words_of
from services.shared.request_log.reader import RequestReader


def main(argv: Sequence[str]) -> int:
    arguments = _parser().parse_args(argv)
    try:
        settings = log_settings(arguments, os.environ)
        with closing(RequestReader(open_for_reading(settings), arguments.tenant)) as reader:
            found = reader.find(arguments.request_id)
    except (BadConfig, ValueError) as error:
        return _failed(str(error))
    except FAULTS as error:
        return _failed(f"the request log cannot be read: {words_of(error)}")
    if not found:
        return _failed(
            f"no request {arguments.request_id} is in the log; rows are written behind, "
            "a second after a request has ended"
        )
    if arguments.json:
        sys.stdout.write(json.dumps([asdict(row) for row in found], indent=2) + "\n")
        return 0
    for row in found:
        show(trace_view(row), LEAST_WIDTH)
    return 0


def _failed(fault: str) -> int:
    sys.stderr.write(f"tokenway trace: {plain(fault, MAX_FAULT)}\n")
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tokenway trace", description=__doc__)
    parser.add_argument(
        "request_id", help="as the answer told it (x-request-id); all requests of that name"
    )
    parser.add_argument("--tenant", help="of this one alone")
    log_arguments(parser)
    parser.add_argument("--json", action="store_true", help="for programs")
    return parser
