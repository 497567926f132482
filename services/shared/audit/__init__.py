"""Who did what to the services, and who was refused, in a file that only grows."""
