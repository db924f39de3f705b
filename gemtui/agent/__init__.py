"""Agents: finding, starting and supervising them, and reading their event streams."""
