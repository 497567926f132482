"""Nodes of a store die under load: blocks come while enough are left, and no answer fails."""

from __future__ import annotations

from services.shared.model_folder import ModelFolder
from tests.faults.cluster import cluster_of
from tests.integration.stack import Launcher, Stack
from tests.kv.books import SERVICE, at_rest, hits, holds
from tests.kv.crowd import crowd_at, known_by
from tests.kv.fleet import cached, light
from tests.redis_server import redis_servers

PROMPTS, PROMPT_TOKENS, TOKENS = 24, 100, 8
POOL_BLOCKS = 48


async def test_two_of_six_nodes_die_and_blocks_still_come_a_third_and_none_is_missed(
    launcher: Launcher, model_folder: ModelFolder, simulated_stack: Stack
) -> None:
    known = await known_by(simulated_stack.router.grpc, PROMPTS, PROMPT_TOKENS, TOKENS)
    with redis_servers(launcher.folder, 6) as nodes:
        store = {"nodes": [node.address for node in nodes], "spread": "erasure"}
        engine = cached(light(model_folder, POOL_BLOCKS), type="distributed", distributed=store)
        with cluster_of(launcher, [engine], model_folder) as cluster:
            (address,) = (one.address for one in cluster.engines)

            async def blocks_come() -> None:
                before = await hits(address, SERVICE)

                async def more() -> bool:
                    return await hits(address, SERVICE) > before + 100

                await holds(more)

            async with crowd_at(cluster.router.address, known, PROMPT_TOKENS) as crowd:
                await blocks_come()
                nodes[0].kill()
                nodes[4].kill()
                await crowd.more(PROMPTS)
                await blocks_come()
                nodes[2].kill()
                await crowd.more(5 * PROMPTS)
                for at in (0, 2, 4):
                    nodes[at].start()
                await blocks_come()
            await at_rest([address])
