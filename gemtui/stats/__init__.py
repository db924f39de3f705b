"""Statistics about sessions: tokens, prompts, tool calls, files and costs."""
