"""Who goes to a replica when."""
