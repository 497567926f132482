"""The content filter in force: found by its name, asked in time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import asynccontextmanager
from importlib.metadata import entry_points
from pathlib import Path

from services.codec.exchange import Exchange
from services.codec.filtering.content_filter import GROUP, ContentFilter, Load, Passage, Refused
from services.codec.filtering.passages import Prompt, RawText, passages_of
from services.codec.filtering.rule_name import rule_name
from services.codec.filtering.screen import FAILED
from services.codec.filtering.screens import ScreenMaker
from services.codec.filtering.settings import ContentFilterSettings
from services.codec.request import Request
from services.shared.access.followed_file import FollowedFile
from services.shared.config import BadConfig
from services.shared.errors import ContentRefused, Unavailable
from services.shared.tasks import Tasks
from services.shared.telemetry import span

THREADS = 4

_log = logging.getLogger(__name__)


class Screening:
    """Asks the filter about prompts, and makes the screens of answers.

    Args:
        content_filter: gives the one in force.
        executor: runs it; one of its own, for it may hang.
        timeout_s: seconds that it may take.
    """

    def __init__(
        self, content_filter: Callable[[], ContentFilter], executor: Executor, timeout_s: float
    ) -> None:
        self._content_filter = content_filter
        self._executor = executor
        self._timeout_s = timeout_s
        self.maker = ScreenMaker(content_filter=content_filter, limit_s=timeout_s)

    async def check(self, request: Request, raw_text: RawText, exchange: Exchange) -> None:
        """Looks at a prompt before anything is made of it.

        Args:
            request: whose prompt it is.
            raw_text: tells what a prompt without a template says.
            exchange: is told the rule.

        Raises:
            ContentRefused: it must not be answered.
            Unavailable: the filter failed or did not answer in time.
        """
        loop = asyncio.get_running_loop()
        with span("codec.filter", exchange.trace):
            asked = loop.run_in_executor(self._executor, self._asked, request.prompt, raw_text)
            try:
                async with asyncio.timeout(self._timeout_s):
                    found = await asked
            except TimeoutError:
                _log.error("the content filter took more than %g s for a prompt", self._timeout_s)
                raise Unavailable(FAILED) from None
        if found is None:
            return
        place, rule = found
        exchange.figures["filter_rule"] = rule
        exchange.account.filter_rules = [rule]
        raise ContentRefused(f"{place} was refused by the content filter", field=place)

    def _asked(self, prompt: Prompt, raw_text: RawText) -> tuple[str, str] | None:
        """The place and the rule that refuse the prompt."""
        passages = passages_of(prompt, raw_text)
        try:
            refused = self._content_filter().check_prompt(passages)
            return None if refused is None else _found(passages, refused)
        except Exception as error:  # noqa: BLE001 the boundary to code that is not ours
            _log.error("the content filter failed on a prompt: %s", type(error).__name__)
            raise Unavailable(FAILED) from None


def _found(passages: Sequence[Passage], refused: Refused) -> tuple[str, str]:
    return passages[refused.at].place, rule_name(refused.rule)


@asynccontextmanager
async def screening(settings: ContentFilterSettings) -> AsyncIterator[Screening | None]:
    """Follows the filter's file inside the block; None where no filter is wanted.

    Raises:
        BadConfig: there is no filter of that name, or it cannot be made.
    """
    if settings.name is None:
        yield None
        return
    load = _load_of(settings.name)
    try:
        current, file = _in_force(load, settings.file)
    except Exception as error:
        raise BadConfig(f"service.content_filter: {error}") from error

    def crashed(name: str, _: Exception) -> None:
        _log.error("%s is not followed any more; what it said last counts on", name)

    executor = ThreadPoolExecutor(THREADS, thread_name_prefix="content-filter")
    async with Tasks(crashed) as tasks:
        if file is not None:
            tasks.start(str(file.path), file.follow())
        try:
            yield Screening(current, executor, settings.timeout_s)
        finally:
            executor.shutdown(wait=False, cancel_futures=True)


def _load_of(name: str) -> Load:
    """Raises BadConfig."""
    points = entry_points(group=GROUP)
    if name not in points.names:
        known = ", ".join(sorted(points.names))
        raise BadConfig(f"service.content_filter.name must be one of {known}, got {name!r}")
    try:
        load: Load = points[name].load()
    except Exception as error:
        raise BadConfig(f"service.content_filter.name: {name} cannot be loaded: {error}") from error
    return load


def _in_force(
    load: Load, path: Path | None
) -> tuple[Callable[[], ContentFilter], FollowedFile[ContentFilter] | None]:
    if path is None:
        only = load(None)
        return lambda: only, None
    file = FollowedFile(path, load, (Exception,))
    return lambda: file.value, file
