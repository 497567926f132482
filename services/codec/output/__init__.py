"""What models write: text, reasoning and tool calls, told apart as the tokens come."""
