"""The computation from token IDs to logits, and the memory it keeps between steps."""
