"""Determine the CLI's decision for a call, and the reasons."""
