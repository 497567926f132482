"""Certificates between services: who shows which, and whom to believe."""
