"""A real Prometheus that scrapes what a test names, with the rules that ship."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import isnan
from pathlib import Path
from typing import Any

import httpx

from tests.deploy.watching import PROMETHEUS
from tests.integration.stack import PATIENCE_S
from tests.redis_server import wait_for
from tests.security.listening import listeners


class PrometheusServer:
    """Answers queries about what it has scraped."""

    def __init__(self, address: str) -> None:
        self._client = httpx.Client(base_url=f"http://{address}/api/v1", timeout=PATIENCE_S)

    def values(self, expr: str) -> list[float]:
        """Of all series that a query finds now and that have a value."""
        told = self._asked("query", query=expr)["result"]
        values = (float(series["value"][1]) for series in told)
        return [value for value in values if not isnan(value)]

    def rules(self) -> list[dict[str, Any]]:
        groups = self._asked("rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def close(self) -> None:
        self._client.close()

    def _asked(self, path: str, **query: str) -> dict[str, Any]:
        answer = self._client.get(f"/{path}", params=query)
        assert answer.status_code == 200, answer.text
        data: dict[str, Any] = answer.json()["data"]
        return data


@contextmanager
def prometheus_server(
    folder: Path, targets: Mapping[str, Sequence[str]]
) -> Iterator[PrometheusServer]:
    """Scrapes each second. Args: targets: `host:port` by job."""
    jobs = [
        {"job_name": job, "static_configs": [{"targets": list(addresses)}]}
        for job, addresses in targets.items()
    ]
    every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config = folder / "prometheus.json"
    rules = [str(PROMETHEUS / "rules.yml")]
    config.write_text(json.dumps({"global": every, "rule_files": rules, "scrape_configs": jobs}))
    command = ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder / 'tsdb'}"]
    with (
        (folder / "prometheus.log").open("wb") as log,
        subprocess.Popen(  # noqa: S603 Debian's program, our own file
            [*command, "--web.listen-address=127.0.0.1:0"], stderr=log
        ) as process,
    ):
        try:
            wait_for(lambda: process.poll() is not None or len(listeners(process.pid)) == 1)
            (address,) = listeners(process.pid)
            server = PrometheusServer(address)
            try:
                yield server
            finally:
                server.close()
        finally:
            process.terminate()
            process.wait(PATIENCE_S)
