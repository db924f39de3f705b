"""Gemini CLI's stored sessions: finding, reading, summarising, watching."""
