"""Checkpoints of a project's files, from which changes are undone and redone."""
