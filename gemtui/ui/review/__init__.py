"""Review a session's changes hunk by hunk, and keep or revert each hunk."""
