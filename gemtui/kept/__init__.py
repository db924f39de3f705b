"""Session files that outlive Gemini CLI's own copies: archived, backed up, and restored."""
