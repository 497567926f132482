"""The replicas: which there are, how they are, the ways to them."""
