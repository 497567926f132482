"""What must not be asked, and what must not be answered."""
