"""Numbers over many sessions: tokens, prompts, tool calls, files, and what they may have cost."""
