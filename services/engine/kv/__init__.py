"""KV blocks beyond the pool: lent, fetched, spilled and stored."""
