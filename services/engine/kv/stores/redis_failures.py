"""What a node's errors mean, in words that tell an operator what to do."""

from __future__ import annotations

import redis

from services.engine.kv.store import StoreFailed, StoreTimeout

MOST_SHOWN = 200
"""Characters of an answer that nobody foresaw."""

_ADVICE: tuple[tuple[str, str], ...] = (
    (
        "OOM",
        "is full: raise its maxmemory, or set its maxmemory-policy to allkeys-lru",
    ),
    ("LOADING", "loads its data from disk: it can be used when it is done"),
    ("READONLY", "is a replica that takes no writes: name its primary in cache.distributed.nodes"),
    (
        "MOVED",
        "is a node of a cluster: set cache.distributed.spread to cluster",
    ),
    ("ASK", "is a node of a cluster: set cache.distributed.spread to cluster"),
    ("CLUSTERDOWN", "belongs to a cluster that is down: see its CLUSTER INFO"),
    ("MASTERDOWN", "is a replica without its primary: name one that runs"),
    ("TRYAGAIN", "is moving slots: it can be used when that is done"),
    (
        "NOAUTH",
        "asks for a password: set cache.distributed.password_file",
    ),
    (
        "AUTH",
        "refuses our password: compare cache.distributed.username and password_file with its users",
    ),
    (
        "NOPERM",
        "forbids our user what we need: allow ping, getex, set, exists, scan, unlink and"
        " cluster|slots on keys tokenway:*",
    ),
    ("MISCONF", "stopped writing since it cannot save to its disk: see its log"),
    ("NOREPLICAS", "has too few replicas to take writes: see its min-replicas-to-write"),
    ("CLIENTS", "takes no more clients: raise its maxclients"),
    ("PROTECTED", "answers loopback only: set its password, and cache.distributed.password_file"),
    ("BULK", "takes no value of this size: raise its proto-max-bulk-len"),
    (
        "UNKNOWN",
        "does not know a command that we need: it must be Redis 6.2, Valkey 7.2 or later",
    ),
)

_CLASSES: tuple[tuple[type[Exception], str], ...] = (
    (redis.exceptions.OutOfMemoryError, "OOM"),
    (redis.exceptions.BusyLoadingError, "LOADING"),
    (redis.exceptions.ReadOnlyError, "READONLY"),
    (redis.exceptions.MovedError, "MOVED"),
    (redis.exceptions.AskError, "ASK"),
    (redis.exceptions.MasterDownError, "MASTERDOWN"),
    (redis.exceptions.ClusterDownError, "CLUSTERDOWN"),
    (redis.exceptions.TryAgainError, "TRYAGAIN"),
    (redis.exceptions.NoPermissionError, "NOPERM"),
    (redis.exceptions.AuthenticationWrongNumberOfArgsError, "AUTH"),
)

_WORDS: tuple[tuple[str, str], ...] = (
    ("Authentication required", "NOAUTH"),
    ("unauthenticated", "NOAUTH"),
    ("MISCONF", "MISCONF"),
    ("NOREPLICAS", "NOREPLICAS"),
    ("max number of clients", "CLIENTS"),
    ("protected mode", "PROTECTED"),
    ("bulk length", "BULK"),
    ("exceeds maximum allowed size", "BULK"),
    ("unknown command", "UNKNOWN"),
)


def failure_of(error: Exception, node: str, timeout_s: float) -> StoreFailed:
    """What went wrong at `node`. Shows no secret: none is in the errors of the client."""
    if isinstance(error, (redis.TimeoutError, TimeoutError)):
        return StoreTimeout(f"{node} does not answer within {timeout_s} s")
    told = str(error)
    name = _name_of(error, told)
    if name is not None:
        return StoreFailed(f"{node} {dict(_ADVICE)[name]}")
    shown = "".join(char if char.isprintable() else "?" for char in told[:MOST_SHOWN])
    if "while writing to socket" in told:
        # It ends the connection before one can read that the value is too large.
        return StoreFailed(
            f"{node} ended the connection while we wrote: where that goes on, see its log, or raise"
            f" its proto-max-bulk-len ({shown})"
        )
    if isinstance(error, (redis.ConnectionError, OSError)):
        return StoreFailed(f"{node} cannot be reached: {shown}")
    return StoreFailed(f"{node} gives no answer that can be used: {shown}")


def _name_of(error: Exception, told: str) -> str | None:
    for words, name in _WORDS:
        if words in told:
            return name
    for cls, name in _CLASSES:
        if isinstance(error, cls):
            return name
    return "AUTH" if isinstance(error, redis.AuthenticationError) else None
