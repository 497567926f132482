"""What both ends of a gRPC connection between services must agree on."""

from __future__ import annotations

MAX_MESSAGE_BYTES = 64 * 2**20
"""A prompt of a million token IDs fits with room; nothing between services is larger."""

_SHARED: tuple[tuple[str, int], ...] = (
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", MAX_MESSAGE_BYTES),
    # A silent peer is found after 20 + 10 s, also while no call is open.
    ("grpc.keepalive_time_ms", 20_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
)

MAX_METADATA_BYTES = 16 * 2**10
"""Keys and tokens of callers fit with room; more is refused before a method is called."""

SERVER_OPTIONS: tuple[tuple[str, int], ...] = (
    *_SHARED,
    # Half of what a client keeps to, so that a late ping never counts as a flood.
    ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
    # A port that is taken is an error, not a second listener.
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", 4096),
    # Below the first none is refused, beyond the second all are.
    ("grpc.max_metadata_size", MAX_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", MAX_METADATA_BYTES),
)

CONNECTION_AGE_S = 3600
"""A server with certificates asks clients to connect again after so long, give or take a tenth."""

CONNECTION_GRACE_S = 3600
"""And ends what is left on the old connection after so much more: by then no generation is."""

AGING_OPTIONS: tuple[tuple[str, int], ...] = (
    ("grpc.max_connection_age_ms", 1000 * CONNECTION_AGE_S),
    ("grpc.max_connection_age_grace_ms", 1000 * CONNECTION_GRACE_S),
)
"""So that a certificate that counts no more does not live on in a connection."""

CLIENT_OPTIONS: tuple[tuple[str, int], ...] = (
    *_SHARED,
    # Only the router knows what may be sent again.
    ("grpc.enable_retries", 0),
    # A replica that comes back is found within a second.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 1_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
    # Services are reached directly, whatever the environment says of proxies.
    ("grpc.enable_http_proxy", 0),
    # Each channel has its own connection: it ends with the channel.
    ("grpc.use_local_subchannel_pool", 1),
)
