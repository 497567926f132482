"""The token stream in Python: its values, its wire form, its client and its server."""
