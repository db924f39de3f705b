"""All sessions: their summaries, cached, merged, listed, and found by what a user types."""
