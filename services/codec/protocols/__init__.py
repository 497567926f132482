"""The public chat protocols: bytes to requests, and output events back to bytes."""
