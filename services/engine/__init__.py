"""Token IDs to logits and back: prefill, decode and the KV cache."""
