"""A row of figures for each request, in a database."""
