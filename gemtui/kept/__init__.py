"""Session files that outlive Gemini CLI's own: archived, backed up, restored."""
