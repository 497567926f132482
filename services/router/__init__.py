"""Which replica serves a generation."""
