"""Simulate a draft policy on tool calls, and propose rules based on past sessions."""
