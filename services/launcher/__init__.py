"""Starts the services of one machine and makes model folders."""
