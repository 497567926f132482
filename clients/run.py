"""One run of a client: a home of its own, a clean environment, an end, and a verdict."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from clients import contained
from clients.backends import door
from clients.client import Call, Client
from clients.installation import CACHE
from clients.table import SCRIPTS
from services.launcher.client_settings import CLIENTS
from tests.integration.stack import Stack

TIMEOUT_S = 180
LOGS = CACHE / "logs"
SECRET = "pelican-4711"  # noqa: S105 no password
QUESTION = "Say hello."
NOBODY = "http://127.0.0.1:9"
"""A proxy that is not there: nothing but 127.0.0.1 can be reached by those who heed it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a run passed, else why not, and how long its longest prompt was."""

    fault: str | None
    prompt_tokens: int = 0

    def __str__(self) -> str:
        return "passed" if self.fault is None else "FAILED"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What a client is to do.

    Args:
        client: it.
        stack: answers.
        call: the tool round trip; None asks the plain question.
    """

    client: Client
    stack: Stack
    call: Call | None

    def verdict(self) -> Verdict:
        """Runs it to its end, in a home that is no part of a repository."""
        before = len(self.stack.codec.lines(message="request"))
        with TemporaryDirectory(prefix="tokenway-client-") as home:
            self._prepare(Path(home))
            status = self._run(Path(home))
        requests = self.stack.codec.lines(message="request")[before:]
        prompt_tokens = max((request.get("prompt_tokens", 0) for request in requests), default=0)
        return Verdict(self._fault(status, requests), prompt_tokens)

    def said(self) -> str:
        """What it printed, the last time."""
        return self._log("out").read_text(errors="replace")

    def _run(self, home: Path) -> int:
        LOGS.mkdir(parents=True, exist_ok=True)
        with self._log("out").open("wb") as stdout, self._log("err").open("wb") as stderr:
            return subprocess.run(  # noqa: S603 our own table
                self._command(home),
                cwd=home / "work",
                env=self._environ(home),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                check=False,
            ).returncode

    def _log(self, stream: str) -> Path:
        kind = "answer" if self.call is None else "tools"
        return LOGS / f"{self.client.name.replace(', ', '-')}-{kind}.{stream}"

    def _prepare(self, home: Path) -> None:
        (home / "work").mkdir()
        (home / "work" / "note.txt").write_text(f"{SECRET}\n")
        for path, text in CLIENTS[self.client.settings](door(self.stack)).files.items():
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)
        # Modules are looked for beside the script, not where it is started.
        modules = self.client.source.home / "node_modules"
        if self.client.command[0] == "/usr/bin/env":
            (home / "node_modules").symlink_to(modules)
            for script in SCRIPTS.glob("*.mjs"):
                shutil.copy(script, home)

    def _command(self, home: Path) -> Sequence[str]:
        program, *arguments = self.client.command
        path = self.client.source.programs / program
        filled = [self._filled(argument, home) for argument in arguments]
        return (
            *(sys.executable, contained.__file__, str(TIMEOUT_S), str(path)),
            *filled,
        )

    def _filled(self, argument: str, home: Path) -> str:
        known = {
            "{prompt}": self._prompt(home),
            "{model}": self.stack.model,
            "{file}": str(home / "work" / "note.txt"),
            "{home}": str(home),
        }
        for name, text in known.items():
            argument = argument.replace(name, text)
        return argument

    def _prompt(self, home: Path) -> str:
        if self.call is None:
            return QUESTION
        value = self.call.value.replace("{file}", str(home / "work" / "note.txt"))
        return f"Call {self.call.tool} ({self.call.argument}: {value}) and tell me what it says."

    def _environ(self, home: Path) -> Mapping[str, str]:
        environ = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "NO_COLOR": "1",
            "HTTP_PROXY": NOBODY,
            "HTTPS_PROXY": NOBODY,
            "NO_PROXY": "127.0.0.1,localhost",
            "MODEL": self.stack.model,
            "URL": self.stack.url,
            "PROMPT": self._prompt(home),
            **CLIENTS[self.client.settings](door(self.stack)).environ,
            **self.client.environ,
        }
        return environ if self.call is None else environ | {"SECRET": SECRET}

    def _fault(self, status: int, requests: Sequence[Mapping[str, Any]]) -> str | None:
        """Why it did not pass: how it ended, what the codec refused, or what it did not say."""
        path = self.client.protocol
        asked = [request for request in requests if request.get("path") == path]
        refused = [request for request in asked if request.get("status") != 200]
        said, complained = [
            self._log(stream).read_text(errors="replace").strip() for stream in ("out", "err")
        ]
        last = f"{said}\n{complained}"
        if refused:
            told = {key: refused[0].get(key) for key in ("status", "error", "field")}
            return f"the codec refused {path}: {told}; {_tail(last)}"
        if status:
            how = f"no end within {TIMEOUT_S} s" if status == contained.TIMED_OUT else str(status)
            return f"it ended with {how}: {_tail(last)}"
        if not asked:
            return f"no request came to {path}"
        if not said:
            return "it said nothing"
        if self.call is not None and SECRET.upper() not in said:
            return f"the tool's result is not in its answer: {_tail(said)}"
        return None


def _tail(text: str) -> str:
    return " ".join(text.split())[-300:]
