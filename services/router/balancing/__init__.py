"""Which replica takes a generation, and why."""
