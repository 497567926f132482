"""Clients that people bring, run for real against a codec; no part of the tests."""
