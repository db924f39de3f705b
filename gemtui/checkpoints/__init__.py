"""Checkpoints of a project's files, and undo and redo by them."""
