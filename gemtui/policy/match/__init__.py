"""Determine whether a rule matches a call: its patterns, and what they search."""
