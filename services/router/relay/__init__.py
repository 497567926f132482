"""Generations on their way."""
