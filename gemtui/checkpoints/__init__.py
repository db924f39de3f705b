"""Checkpoints of a project's files, with which changes are undone and redone."""
