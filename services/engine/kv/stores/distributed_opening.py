"""A store of one node, of a cluster, or of several nodes, as the settings have it."""

from __future__ import annotations

from services.engine.kv.cache_settings import CacheSettings, DistributedSettings, Spread
from services.engine.kv.store import Store
from services.engine.kv.stores.node_address import NodeAddress, node_address
from services.engine.kv.stores.redis_access import access_of
from services.engine.kv.stores.redis_cluster import RedisCluster
from services.engine.kv.stores.redis_node import RedisNode
from services.engine.kv.stores.redis_route import RedisRoute, SingleNode
from services.engine.kv.stores.redis_store import RedisStore
from services.shared.config import BadConfig


def open_distributed(settings: CacheSettings, layout_id: str) -> Store:
    """Any spread but ERASURE, of which `open_nodes` has the parts. Raises BadConfig."""
    distributed = settings.distributed
    access = access_of(distributed)
    first, *_ = addresses = _addresses(distributed)
    route: RedisRoute
    if distributed.spread is Spread.CLUSTER:
        route = RedisCluster(addresses, access)
    else:
        route = SingleNode(RedisNode(first, access))
    return RedisStore(route, layout_id, settings.ttl_s)


def open_nodes(settings: CacheSettings, layout_id: str) -> list[Store]:
    """Each node as a store of its own. Raises BadConfig."""
    access = access_of(settings.distributed)
    return [
        RedisStore(SingleNode(RedisNode(address, access)), layout_id, settings.ttl_s)
        for address in _addresses(settings.distributed)
    ]


def _addresses(settings: DistributedSettings) -> list[NodeAddress]:
    addresses = []
    for index, text in enumerate(settings.nodes):
        try:
            address = node_address(text)
        except ValueError as error:
            raise BadConfig(f"cache.distributed.nodes[{index}] {error}") from None
        if address in addresses:
            raise BadConfig(f"cache.distributed.nodes[{index}] {address} is there twice")
        addresses.append(address)
    return addresses
