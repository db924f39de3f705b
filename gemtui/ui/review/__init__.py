"""The screen on which a session's change is looked at, hunk by hunk, and kept or reverted."""
