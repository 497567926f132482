"""Certificates for services and operators: made, kept and told of."""
