"""Simulate a draft policy on tool calls, and suggest rules based on past sessions."""
