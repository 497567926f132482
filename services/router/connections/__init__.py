"""The ways to the replicas, as these come and go."""
