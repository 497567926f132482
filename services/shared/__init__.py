"""What the services have in common; it knows none of them."""
