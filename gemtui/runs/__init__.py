"""Our own runs: their folders, and where a run meets the session that it stored."""
