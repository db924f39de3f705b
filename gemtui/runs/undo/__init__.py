"""Checkpoints of a run's project, and what they make possible: undo, fork, review."""
