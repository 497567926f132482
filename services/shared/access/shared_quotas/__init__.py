"""Quotas that several processes share through Redis or Valkey."""
