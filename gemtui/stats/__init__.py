"""Statistics over sessions: tokens, prompts, tool calls, files, costs."""
