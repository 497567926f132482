"""Attention of one chunk over its sequence's gathered keys and values."""

from __future__ import annotations

import torch
from torch.nn import functional

from services.engine.model.kv_pool import KvPool
from services.engine.model.layout import Span


def attend_gathered(queries: torch.Tensor, span: Span, pool: KvPool, layer: int) -> torch.Tensor:
    """Causal attention of `queries` [rows, heads, head_dim]; [rows, heads * head_dim].

    Queries are scaled by the caller, and their own keys and values are in the pool already.
    """
    block_ids = torch.as_tensor(span.block_ids, device=queries.device)
    keys, values = (kept[None, :, : span.end] for kept in pool.gather(layer, block_ids))
    attended = functional.scaled_dot_product_attention(
        queries.transpose(0, 1)[None],
        keys,
        values,
        attn_mask=_mask(span, queries.device) if span.start else None,
        is_causal=span.start == 0,
        scale=1.0,
        enable_gqa=True,
    )
    return attended[0].transpose(0, 1).flatten(1)


def _mask(span: Span, device: torch.device) -> torch.Tensor | None:
    """Which positions [end] each row [rows] sees: its own and those before."""
    if span.rows == 1:
        return None
    own = torch.arange(span.start, span.end, device=device)
    return torch.arange(span.end, device=device) <= own[:, None]
