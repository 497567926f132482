"""OpenAI Completions, as it was before there were messages."""
