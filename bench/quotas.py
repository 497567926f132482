"""Whether codecs that share a store grant one limit together: tokens over what the limit allows.

Four codecs, a real Redis and one simulated engine, as real processes. For some seconds clients ask
each codec for more than their tenant may use; what was granted is told over a minute's worth and
what flowed in. More than that is never granted.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from pathlib import Path

from bench.ratio import Ratio
from services.shared.model_folder import ModelFolder
from tests.integration.stack import Launcher
from tests.quotas.codecs import codecs_of
from tests.quotas.over_limit import over_limit

DEFAULT_MODEL = Path(".cache/models/smollm2-135m-instruct")
TENANT = "greedy"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.quotas", description=__doc__)
    parser.add_argument("--model", type=Path, default=DEFAULT_MODEL)
    parser.add_argument("--codecs", type=int, default=4, help="(4)")
    parser.add_argument("--seconds", type=float, default=20.0, help="(20)")
    parser.add_argument("--per-minute", type=int, default=30_000, help="tokens (30000)")
    options = parser.parse_args()
    tenants = [{"tenant": TENANT, "tokens_per_minute": options.per_minute}]
    with tempfile.TemporaryDirectory() as folder:
        launcher, model = Launcher(folder=Path(folder), environ={}), ModelFolder(options.model)
        with codecs_of(launcher, model, tenants, options.codecs) as codecs:
            granted = asyncio.run(
                over_limit(codecs, TENANT, options.per_minute, options.seconds, max_tokens=50)
            )
            known = codecs.known(TENANT)
    print(f"tokens of each codec {list(granted.tokens)}, {granted.refused} requests refused")
    print(f"reserved {known['reserved']:.0f}, settled {known['settled']:.0f}")
    print(f"due {granted.due:.0f}, at most {granted.most:.0f}, beyond it {granted.excess:.0f}")
    total = sum(granted.tokens)
    if granted.excess:
        raise SystemExit(f"more than the limit was granted: {total}")
    print(Ratio(name="granted-of-limit", value=total / granted.due, aim="0.98 to 1.02"))


if __name__ == "__main__":
    main()
