"""Gemini CLI's stored sessions: find, read, summarise, and watch them."""
