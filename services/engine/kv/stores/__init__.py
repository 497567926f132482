"""Stores behind the service cache: Redis and Valkey, k+m of them, and one file of the machine."""
