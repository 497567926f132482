"""OpenAI Responses, as far as it needs no state between requests."""
