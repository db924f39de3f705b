"""Session files that outlive Gemini CLI's own: linked or copied, verified, put back, removed."""
