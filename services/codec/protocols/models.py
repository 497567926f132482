"""The list of models, in a form that clients of both protocols read."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from services.codec.protocols.reply import json_bytes
from services.codec.served_model import ServedModel

OWNER = "tokenway"


def model_list(model: ServedModel) -> bytes:
    return json_bytes(
        {
            "object": "list",
            # One client looks for a list of this name and takes an empty one.
            "models": [],
            "data": [_entry(model, name) for name in model.names],
            "has_more": False,
            "first_id": next(iter(model.names), None),
            "last_id": next(reversed(model.names), None),
        }
    )


def model_entry(model: ServedModel, name: str) -> bytes:
    """Raises NotFound for a name that is none of the model's."""
    model.check(name)
    return json_bytes(_entry(model, name))


def _entry(model: ServedModel, name: str) -> dict[str, Any]:
    created = datetime.fromtimestamp(model.created, UTC)
    return {
        "id": name,
        "object": "model",
        "created": model.created,
        "owned_by": OWNER,
        "root": model.names[0],
        "parent": None,
        "max_model_len": model.context_length,
        "type": "model",
        "display_name": name,
        "created_at": created.isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "max_input_tokens": model.context_length,
        "max_tokens": model.context_length,
    }
