"""Services among themselves: connections with certificates, and who may call what."""
