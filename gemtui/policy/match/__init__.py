"""Decide whether a rule matches a call: its patterns, and the text they search."""
