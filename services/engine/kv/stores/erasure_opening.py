"""Records spread over several nodes, as the settings have it."""

from __future__ import annotations

from services.engine.kv.cache_settings import CacheSettings
from services.engine.kv.store import Store
from services.engine.kv.stores.distributed_opening import open_nodes
from services.engine.kv.stores.erasure_code import ErasureCode, NoCode
from services.engine.kv.stores.erasure_store import ErasureStore
from services.engine.kv.stores.node_crews import NodeCrews
from services.shared.config import BadConfig


def open_erasure(settings: CacheSettings, layout_id: str) -> Store:
    """Raises BadConfig."""
    distributed = settings.distributed
    try:
        code = ErasureCode(distributed.data_fragments, distributed.parity_fragments)
    except NoCode as error:
        raise BadConfig(f"cache.distributed.data_fragments: {error}") from error
    nodes = open_nodes(settings, layout_id)
    crews = NodeCrews(nodes, distributed.connections, distributed.timeout_s)
    return ErasureStore(crews, code, layout_id)
