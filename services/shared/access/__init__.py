"""Who asks: API keys, signed tokens, addresses, tenants and what they may use."""
