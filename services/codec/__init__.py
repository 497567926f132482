"""Text to token IDs and back: the protocols that clients speak."""
