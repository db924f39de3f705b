"""Agents: find, start and supervise them, and read their event streams."""
