"""`tokenway up`: all services on this machine, until Ctrl-C."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial

import grpc
from rich.console import Console

from services.launcher.certs.authority_folder import BadAuthority
from services.launcher.dev_key import make_dev_key
from services.launcher.environment import check_environment
from services.launcher.fleet import Fleet
from services.launcher.own_certificates import CERTIFICATES
from services.launcher.plan import Plan, Program, module_of
from services.launcher.run_file import RunFile
from services.launcher.start_failed import StartFailed
from services.launcher.summary import summary
from services.launcher.up_options import UpOptions, up_options
from services.launcher.waits import Waits
from services.shared.access.key_file import BadKeyFile
from services.shared.config import BadConfig
from services.shared.model_folder import CONFIG, BadModelFolder, ModelFolder
from services.shared.tasks import Tasks
from services.shared.tls.certificate_files import BadCertificates


def main(argv: Sequence[str], program: Program = module_of) -> int:
    console = Console(stderr=True, highlight=False, soft_wrap=True, markup=False)
    options = up_options(argv)
    try:
        check_environment(os.environ)
        _check(options)
        asyncio.run(_up(Plan(options=options, program=program, environ=os.environ), console))
    except BadAuthority as error:
        console.print(
            f"tokenway up: {error}; remove {options.key_dir / CERTIFICATES}, and another "
            "authority is made"
        )
        return 1
    except (StartFailed, BadCertificates, BadConfig, BadKeyFile, OSError) as error:
        console.print(f"tokenway up: {error}")
        return 1
    except grpc.aio.AioRpcError as error:
        console.print(f"tokenway up: the engine stopped answering: {error.details()}; start again")
        return 1
    return 0


def _check(options: UpOptions) -> None:
    try:
        ModelFolder(options.model).file(CONFIG)
    except BadModelFolder as error:
        raise StartFailed(
            f"{error}; make the default model with `make model`, or name a model folder by --model"
        ) from error
    folder = options.config_dir
    if folder is not None and not folder.is_dir():
        raise StartFailed(f"{folder} is missing; name a folder of settings by --config-dir")
    options.log_dir.mkdir(parents=True, exist_ok=True)


async def _up(plan: Plan, console: Console) -> None:
    log_dir = plan.options.log_dir
    run_file = RunFile(log_dir)
    if plan.asks_for_dev_key:
        make_dev_key(plan.options.key_dir)
    mesh = plan.mesh
    mesh.keep(plan.engine_names)
    fleet = Fleet(plan, console.print)
    with _cancelled_by(signal.SIGTERM, signal.SIGINT):
        try:
            with Waits(console) as waits:
                addresses = await fleet.start(waits)

            def note() -> None:
                run_file.write(addresses.url, fleet.children)

            note()
            console.print(await summary(addresses, plan))
            console.print(f"\nlogs in {log_dir}; Ctrl-C stops all")
            async with Tasks(partial(_not_kept, console)) as tasks:
                tasks.start("certificates", mesh.kept(plan.engine_names))
                await fleet.keep(note)
        except asyncio.CancelledError:
            console.print("stopping; Ctrl-C again ends all at once")
        finally:
            run_file.remove()
            await fleet.stop()


def _not_kept(console: Console, name: str, error: Exception) -> None:
    console.print(f"{name} are not renewed any more: {error}; start again before they end")


@contextmanager
def _cancelled_by(*numbers: signal.Signals) -> Iterator[None]:
    """Cancels the task that runs the block when a signal comes, and again when another does."""
    task = asyncio.current_task()
    if task is None:
        raise RuntimeError("only a task can be cancelled")
    loop = asyncio.get_running_loop()
    for number in numbers:
        loop.add_signal_handler(number, task.cancel)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
