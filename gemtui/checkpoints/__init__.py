"""Checkpoints of a project's files, used to undo and redo changes."""
