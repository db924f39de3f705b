"""The review of a session's changes, hunk by hunk, to keep or revert each one."""
